"""How long things may take in a trial: what its settings allow, before an anomaly begins.

- *Attempt*: fetcher_stop_ms and the requests of one attempt, one round trip each: 3B + C + T + 4P
  + 7 for B brokers, C members, T topics and P partitions. That is facts/zkconsumer, 8.1 for static
  members: 3B + C + T + p + 7 reads and q + p + d writes, where no member owned (q), claims (p) or
  commits (d) more than P partitions. It errs on the long side: a member has a share of P, and the
  leader finder's 1 + B reads hold nobody up. A round trip is 2 * latency_max_us in a simulated
  world, else LIVE_ROUND_TRIP_US. Live, where one took longer that no fault disturbed, that long:
  a host may be busy with other things.
- *Rebalance*: rebalance_max_retries * (rebalance_backoff_ms + attempt), which is what 0.8.2 spends
  on one rebalance before it gives up (facts/zkconsumer, 3.6).
- *Quiet*: two back-offs (the trial's), but QUIET_LEAST_US: nothing may have changed for so long
  when the runner says that the group rests.
- *Expiry*: session_timeout_ms + 2 ticks: a dead member's session lives that long, as the server
  rounds expiry up to ticks.

Settings are the trial's parameters, and of those that a member tells when it starts the largest.
Members, topics and partitions are the parameters', or as many as the history shows, if more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rebalance_lab.checks.faults import undisturbed
from rebalance_lab.checks.lives import lives
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of, once

#: What a real server on a busy host is allowed for a request and its reply, a write to disk
#: included. An allowance, not a measurement.
LIVE_ROUND_TRIP_US = 5_000

QUIET_LEAST_US = 200_000

_SETTINGS = ("rebalance_max_retries", "rebalance_backoff_ms", "session_timeout_ms", "tick_ms")
_NEEDED = ("partitions", *_SETTINGS)


@dataclass(frozen=True, slots=True)
class Bounds:
    """In microseconds; see the module."""

    attempt_us: int
    rebalance_us: int
    expiry_us: int
    quiet_us: int


def lacking(history: History) -> str | None:
    """Which parameters the bounds need and the trial does not tell; None where it tells all."""
    parameters = history.trial.parameters
    texts = [name for name in ("group", "topic") if not isinstance(parameters.get(name), str)]
    missing = texts + [name for name in _NEEDED if not isinstance(parameters.get(name), int)]
    return f"its parameters lack {', '.join(missing)}" if missing else None


@once
def bounds(history: History) -> Bounds:
    """The trial's bounds. Of parameters that are missing each counts 0: ask `lacking` first."""
    settings = {name: _parameter(history, name) for name in (*_SETTINGS, "fetcher_stop_ms")}
    started = events_of(history, Kind.MEMBER_STARTED)
    for name, value in settings.items():
        told = [number for event in started if isinstance(number := event.of(name), int)]
        settings[name] = max([value, *told])
    attempt_us = _attempt_us(history, len(started), settings["fetcher_stop_ms"])
    return Bounds(
        attempt_us=attempt_us,
        rebalance_us=settings["rebalance_max_retries"] * (settings["rebalance_backoff_ms"] * 1000 + attempt_us),
        expiry_us=(settings["session_timeout_ms"] + 2 * settings["tick_ms"]) * 1000,
        quiet_us=max(2 * _parameter(history, "rebalance_backoff_ms") * 1000, QUIET_LEAST_US),
    )


def _attempt_us(history: History, started: int, fetcher_stop_ms: int) -> int:
    places = {
        (event.topic, event.partition) for event in events_of(history, Kind.CREATED) if event.partition is not None
    }
    topics = max(1, len({topic for topic, _ in places}))
    partitions = max(_parameter(history, "partitions"), len(places))
    members = max(_parameter(history, "members"), started)
    requests = 3 * _parameter(history, "brokers") + members + topics + 4 * partitions + 7
    if history.trial.world == "simulated":
        return fetcher_stop_ms * 1000 + requests * 2 * _parameter(history, "latency_max_us")
    return max([fetcher_stop_ms * 1000 + requests * LIVE_ROUND_TRIP_US, *_attempts_us(history)])


def _attempts_us(history: History) -> Iterator[int]:
    """How long each attempt took that no fault disturbed."""
    attempts = (attempt for life in lives(history) for rebalance in life.rebalances for attempt in rebalance.attempts)
    return (
        attempt.ended.at_us - attempt.began.at_us
        for attempt in attempts
        if attempt.ended is not None and undisturbed(history, attempt.began.at_us, attempt.ended.at_us)
    )


def _parameter(history: History, name: str) -> int:
    value = history.trial.parameters.get(name)
    return value if isinstance(value, int) else 0
