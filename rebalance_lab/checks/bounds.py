"""How long things may take in a trial according to its settings, before they are an anomaly.

- *Attempt*: fetcher_stop_ms, but no longer than any stop of these members can have taken (a stop lies between an
  ATTEMPT_BEGAN and the attempt's DECIDED, or before what follows an attempt without one), and the requests of one
  attempt, one round trip each: 3B + C + T + 4P + 7 for B brokers, C members, T topics and P partitions. A member that
  subscribes by name makes 3B + C + T + p + 7 reads and q + p + d writes, where no member owned (q), claims (p) or
  commits (d) more than P partitions. This is an upper bound: a member has a share of P, and does not wait for the 1 + B
  reads of the leader finder. A round trip is 2 * latency_max_us in a simulated world, else LIVE_ROUND_TRIP_US. In a
  simulated ensemble a write at a follower also goes to the leader and back: 2 * REPLICATION_US for each request. A live
  host may be busy with other things, so in a live trial an attempt may take as long as the requests of the slowest
  attempt that no fault disturbed (`_requests_us`). The time between a member's requests does not count: otherwise slow
  members would extend their own bound.
- *Requests*: the requests of one attempt alone, without the stop of the fetchers.
- *Prompt*: how long an idle member may take from a trigger to its REBALANCE_BEGAN. It needs two round trips for each
  notification that waits for ZkClient's event thread (one for each path that it watches: ids, brokers, the list of
  topics, T topics), one for each of the T topics that it watches when it starts, and NEW_SESSION_REQUESTS. In a live
  trial, where the host may be busy, it is the requests of one attempt, LIVE_ROUND_TRIP_US each.
- *Rebalance*: rebalance_max_retries * (rebalance_backoff_ms + attempt): what 0.8.2 spends on one rebalance before it
  gives up (`ZKRebalancerListener.syncedRebalance`).
- *Quiet*: two back-offs (the trial's), at least QUIET_LEAST_US: for so long nothing has changed when the runner reports
  that the group rests.
- *Expiry*: session_timeout_ms + 2 ticks: a dead member's session lives that long, because the server rounds expiry up
  to ticks.

Settings are those that members report when they start; of several, the longest. The trial's parameter replaces a
setting that a member does not report, or if there is no member. The numbers of members, topics and partitions are the
parameters', or those that the history shows, if larger.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_lab.checks.faults import undisturbed
from rebalance_lab.checks.members import member_lives
from rebalance_lab.checks.stretches import Stretch, union
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: A real server on a busy host may take so long for a request and its reply, with a write to disk. Assumed, not
#: measured.
LIVE_ROUND_TRIP_US = 5_000

#: The most that one request adds to the bound of an attempt on a live host, however long it took. Assumed as well: the
#: slowest request of a young JVM, beside nine others, took 1.4 s.
LIVE_REQUEST_US = 1_000_000

#: The most that a message between two servers of a simulated ensemble takes (`ServerSettings.replication_us`).
REPLICATION_US = 900

QUIET_LEAST_US = 200_000

#: A member registers in a new session on ZkClient's event thread with so many requests: its id and its parents, with a
#: read each.
NEW_SESSION_REQUESTS = 6

_SETTINGS = ("rebalance_max_retries", "rebalance_backoff_ms", "session_timeout_ms", "tick_ms")
_NEEDED = ("partitions", *_SETTINGS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """In microseconds; see the module."""

    attempt_us: int
    requests_us: int
    prompt_us: int
    rebalance_us: int
    expiry_us: int
    quiet_us: int


def lacking(history: History) -> str | None:
    """The parameters that the bounds need and the trial lacks; None if it has all."""
    parameters = history.trial.parameters
    texts = [name for name in ("group", "topic") if not isinstance(parameters.get(name), str)]
    missing = texts + [name for name in _NEEDED if not isinstance(parameters.get(name), int)]
    return f"the trial's parameters lack {', '.join(missing)}" if missing else None


@once
def bounds(history: History) -> Bounds:
    """The bounds of the trial's most patient member. Missing parameters count as 0: check `lacking` first."""
    return bounds_of(history, frozenset(event.actor for event in events_of(history, Kind.MEMBER_STARTED)))


def bounds_of(history: History, actors: frozenset[str]) -> Bounds:
    """The bounds of the most patient of these members; see `bounds`."""
    started = [event for event in events_of(history, Kind.MEMBER_STARTED) if event.actor in actors]
    settings = {}
    for name in (*_SETTINGS, "fetcher_stop_ms"):
        reported = [event.of(name) for event in started]
        known = [number for number in reported if isinstance(number, int)]
        trial = [] if known and len(known) == len(reported) else [_parameter(history, name)]
        settings[name] = max([*known, *trial])
    requests_us = _longest_requests_us(history)
    attempt_us = _stop_us(history, actors, settings["fetcher_stop_ms"] * 1000) + requests_us
    return Bounds(
        attempt_us=attempt_us,
        requests_us=requests_us,
        prompt_us=_prompt_us(history),
        rebalance_us=settings["rebalance_max_retries"] * (settings["rebalance_backoff_ms"] * 1000 + attempt_us),
        expiry_us=(settings["session_timeout_ms"] + 2 * settings["tick_ms"]) * 1000,
        quiet_us=max(2 * _parameter(history, "rebalance_backoff_ms") * 1000, QUIET_LEAST_US),
    )


def _stop_us(history: History, actors: frozenset[str], reported_us: int) -> int:
    """How long the fetchers of these members take to stop: what they report, limited to what attempts show."""
    shown = [stop_us for actor, stop_us in _shown_stops_us(history) if actor in actors]
    return min(reported_us, max(shown, default=reported_us))


@once
def _shown_stops_us(history: History) -> list[tuple[str, int]]:
    """The actor of each attempt, and how long the stop of its fetchers may have taken."""
    end = history.events[-1] if history.events else None
    found = []
    for life in member_lives(history):
        for rebalance in life.rebalances:
            after = [attempt.began for attempt in rebalance.attempts[1:]] + [rebalance.ended or end]
            for attempt, follows in zip(rebalance.attempts, after, strict=False):
                until = attempt.decided or follows
                if until is not None:
                    found.append((life.actor, until.at_us - attempt.began.at_us))
    return found


@once
def _ordinary_requests_us(history: History) -> int:
    """What the requests of one attempt take with one ordinary round trip each."""
    simulated = history.trial.world == "simulated"
    return _requests(history) * (2 * _parameter(history, "latency_max_us") if simulated else LIVE_ROUND_TRIP_US)


@once
def _requests(history: History) -> int:
    """How many requests an attempt makes at most."""
    places = {
        (event.topic, event.partition) for event in events_of(history, Kind.CREATED) if event.partition is not None
    }
    topics = max(1, len({topic for topic, _ in places}))
    partitions = max(_parameter(history, "partitions"), len(places))
    members = max(_parameter(history, "members"), len(events_of(history, Kind.MEMBER_STARTED)))
    return 3 * _parameter(history, "brokers") + members + topics + 4 * partitions + 7


@once
def _prompt_us(history: History) -> int:
    """The longest time from a trigger to a REBALANCE_BEGAN; see the module."""
    if history.trial.world != "simulated":
        return _ordinary_requests_us(history)
    topics = {event.topic for event in events_of(history, Kind.CREATED) if event.topic is not None}
    requests = 3 * max(1, len(topics)) + 6 + NEW_SESSION_REQUESTS
    between_servers_us = NEW_SESSION_REQUESTS * _between_servers_us(history)
    return requests * 2 * _parameter(history, "latency_max_us") + between_servers_us


@once
def _longest_requests_us(history: History) -> int:
    """What the requests of one attempt may take."""
    if history.trial.world == "simulated":
        return _ordinary_requests_us(history) + _requests(history) * _between_servers_us(history)
    return max([_ordinary_requests_us(history), *_requests_us(history)])


def _between_servers_us(history: History) -> int:
    """The additional time of a request in a simulated ensemble."""
    return 2 * REPLICATION_US if _parameter(history, "servers") > 1 else 0


def _requests_us(history: History) -> Iterator[int]:
    """How long requests were under way in each attempt that no fault disturbed, at most LIVE_REQUEST_US for each
    request. For an attempt without a recorded request: how long it took, at most LIVE_REQUEST_US."""
    spans = _request_spans(history)
    for life in member_lives(history):
        for attempt in life.attempts:
            if attempt.ended is None or not undisturbed(history, attempt.began.at_us, attempt.ended.at_us):
                continue
            began_us, ended_us = attempt.began.at_us, attempt.ended.at_us
            its = spans.get(life.actor, [])
            first = bisect_left(its, began_us, key=_begin_us)
            within = its[first : bisect_right(its, ended_us, key=_begin_us)]
            if within:
                yield sum(min(stretch.end_us, ended_us) - stretch.begin_us for stretch in union(within))
            else:
                yield min(ended_us - began_us, LIVE_REQUEST_US)


def _request_spans(history: History) -> dict[str, list[Stretch]]:
    """Each actor's requests in the order of their INVOKED, each cut to LIVE_REQUEST_US. The log of a real member shows
    only when a reply came (INVOKED and OK have one time): such a request counts from the record before it."""
    invoked: dict[object, Event] = {}
    last_us: dict[str, int] = {}
    found: dict[str, list[Stretch]] = {}
    for event in events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP):
        if event.kind is Kind.INVOKED:
            invoked[event.id] = event
            continue
        begin = invoked.pop((event.actor, event.of("of")), None)
        if begin is not None:
            begin_us = begin.at_us if begin.at_us < event.at_us else last_us.get(event.actor, event.at_us)
            end_us = min(event.at_us, begin_us + LIVE_REQUEST_US)
            found.setdefault(event.actor, []).append(Stretch(begin_us, end_us, begin.id, event.id))
        last_us[event.actor] = event.at_us
    return {actor: sorted(spans, key=_begin_us) for actor, spans in found.items()}


def _begin_us(span: Stretch) -> int:
    return span.begin_us


def _parameter(history: History, name: str) -> int:
    value = history.trial.parameters.get(name)
    return value if isinstance(value, int) else 0
