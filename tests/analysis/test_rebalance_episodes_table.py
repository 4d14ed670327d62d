"""Rebalance episodes and trial measures against an oracle on random histories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast

from stored_trials import RandomTrials

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.results import MEASURES
from rebalance_lab.analysis.tables.trial_results import EPISODES, TRIAL_MEASURES, rebalance_episodes, trial_measures
from rebalance_lab.analysis.trialwise.episodes import episodes
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval, belief_intervals, registry_intervals
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

STEPS = ("rebalance-triggered", "rebalance-began", "attempt-began", "attempt-failed", "rebalance-ended")
COUNTED = {"rebalances": "rebalance-began", "attempts": "attempt-began", "failed_attempts": "attempt-failed"}
READS = {"get": 1, "children": 1, "exists": 1, "multi_read": 3}  # a random multi-read has three parts
WRITES = {"create": 1, "set": 1, "delete": 1, "multi": 1}


def happens(event: Event) -> bool:
    written = event.kind in ("created", "changed", "deleted") and event.member is not None
    return event.group is not None and (event.kind in STEPS or written)


def in_order(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """What the registry tells of up to 2 ms before a rest or a phase comes after it."""
    marks = [event.at_us for event in events if event.kind in ("rest-reached", "rest-missed", "phase")]

    def moment(event: Event) -> tuple[int, bool]:
        early = event.kind in ("created", "changed", "deleted")
        near = [at_us for at_us in marks if early and event.at_us <= at_us <= event.at_us + 2000]
        return (max(near), True) if near else (event.at_us, False)

    return tuple(sorted(events, key=moment))


def oracle(history: History) -> list[dict[str, Any]]:
    """Each group and stretch by itself, the plain way."""
    events, rows = in_order(history.events), []
    place = {event.id: index for index, event in enumerate(events)}
    rests = [event for event in events if event.kind in ("rest-reached", "rest-missed")]
    for group in sorted({event.group for event in events if happens(event)}):
        number = 0
        for stretch in range(len(rests) + 1):
            here = [event for event in events if sum(place[rest.id] < place[event.id] for rest in rests) == stretch]
            steps = [event for event in here if happens(event) and event.group == group]
            if steps:
                row: dict[str, Any] = {"trial": history.trial.id, "group": group, "number": number}
                rest = rests[stretch] if stretch < len(rests) else None
                row |= bounds(history, steps, rest) | part_and_phase(events, steps[0], rests[:stretch])
                counts = counted(here, group, actors(events)) | moved(events, group, here)
                rows.append(row | counts | ownership(history, group, row["begin_us"], row["end_us"]))
                number += 1
    return rows


def actors(events: tuple[Event, ...]) -> dict[str, str]:
    started = [event for event in events if event.kind == "member-started" and event.group is not None]
    return {event.actor: event.group for event in reversed(started)}


def bounds(history: History, steps: list[Event], rest: Event | None) -> dict[str, Any]:
    rested = rest is not None and rest.kind == "rest-reached"
    last = steps[-1] if rested else rest or history.events[-1]
    return {"begin_us": steps[0].at_us, "end_us": last.at_us, "rested": rested}


def part_and_phase(events: tuple[Event, ...], first: Event, rests: list[Event]) -> dict[str, Any]:
    before = events[: events.index(first)]
    phases = [event.of("name") for event in before if event.kind == "phase"]
    settled = any(rest.kind == "rest-reached" for rest in rests)
    part = "closing" if "closing" in phases else "change" if settled else "assembly"
    return {"part": part, "phase": phases[-1] if phases else ""}


def counted(here: list[Event], group: str, of: dict[str, str]) -> dict[str, int]:
    mine = Counter[str](event.kind for event in here if event.group == group)
    asked = [event for event in here if event.kind in ("invoked", "operations", "watch-fired")]
    asked = [event for event in asked if of.get(event.actor) == group]
    counts = {name: mine[kind] for name, kind in COUNTED.items()}
    failed = [event for event in here if event.kind == "attempt-failed" and event.group == group]
    began = [event for event in here if event.kind == "rebalance-began" and event.group == group]
    many = [event.of("counts") for event in asked if event.kind == "operations"]
    return counts | {
        "members": len({event.member for event in began}),
        "conflicts": sum(event.of("reason") == "conflict" for event in failed),
        "notifications": mine["notification-queued"],
        "watches": sum(event.kind == "watch-fired" for event in asked),
        "reads": sum(READS.get(str(event.of("op")), 0) for event in asked) + sum(10 for each in many if each),
        "writes": sum(WRITES.get(str(event.of("op")), 0) for event in asked) + sum(1 for each in many if each),
    }


def moved(events: tuple[Event, ...], group: str, here: list[Event]) -> dict[str, int]:
    ids, count = {event.id for event in here}, 0
    owner: dict[Any, str] = {}
    owned = [each for each in registry_intervals(events) if each.group == group]
    for each in sorted(owned, key=lambda each: (each.begin_us, *each.begin)):
        count += each.begin in ids and owner.get(each.place, each.member) != each.member
        owner[each.place] = each.member
    return {"moved": count}


def ownership(history: History, group: str, begin_us: int, end_us: int) -> dict[str, int]:
    """By the moments between which nothing changes: who owns each place from one to the next."""
    events = history.events
    registry = [each for each in registry_intervals(events) if each.group == group]
    belief = [each for each in belief_intervals(events) if each.group == group]
    since = places(events, group, [*registry, *belief])
    ends = {each for interval in [*registry, *belief] for each in (interval.begin_us, interval.end_us)}
    moments = sorted(at for at in {begin_us, end_us, *ends, *since.values()} if begin_us <= at <= end_us)
    unowned = doubly = 0
    for start, stop in pairwise(moments):
        for place, known_us in since.items():
            owners, believers = (
                sum((each.topic, each.partition) == place and each.begin_us <= start < each.end_us for each in layer)
                for layer in (registry, belief)
            )
            unowned += (stop - start) * (known_us <= start and owners == 0)
            doubly += (stop - start) * max(0, believers - 1)
    return {"unowned_us": unowned, "doubly_owned_us": doubly}


def places(events: tuple[Event, ...], group: str, owned: list[Interval]) -> dict[tuple[str, int], int]:
    since = {(each.topic, each.partition): 0 for each in owned}
    started = [event for event in events if event.kind == "member-started" and event.group == group]
    topics = {each.topic for each in owned} | {
        topic for event in started for topic in cast(Iterable[str], event.of("streams") or ())
    }
    told = {'{"version":1,"partitions":{"0":[1],"2":[1]}}': (0, 2), '{"partitions":{"1":[]}}': (1,)}
    for event in reversed(events):
        if event.kind in ("created", "changed") and event.topic in topics and event.partition is None:
            own = event.of("path") == f"/brokers/topics/{event.topic}"
            numbers = told.get(str(event.of("data")), ()) if own else ()
            since |= {(event.topic, number): event.at_us for number in numbers}
    return since


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    expected = [row for history in random_trials.histories.values() for row in oracle(history)]
    table = rebalance_episodes(random_trials.results)
    assert table.schema == EPISODES
    found = sorted(rows_of(table), key=lambda row: (row["trial"], row["group"], row["number"]))
    for one, other in zip(found, expected, strict=True):
        assert one == other
    assert {row["part"] for row in expected} == {"assembly", "change", "closing"}
    for name in (*COUNTED, "conflicts", "reads", "watches", "unowned_us", "doubly_owned_us", "moved", "rested"):
        assert sum(row[name] > 0 for row in expected) > 10, name


def test_what_the_registry_tells_too_early_belongs_to_the_next_change() -> None:
    """Seed 12: the last member's session, closed in the phase `closing`, stands 211 µs before that: the server's
    clock shows whole milliseconds."""
    history, _ = simulate(make_plan("leave", seed=12))
    (closing,) = [event for event in history.events if event.of("name") == "closing"]
    early = [event for event in history.events if event.kind == "deleted" and -2000 < event.at_us - closing.at_us < 0]
    assert early, "the seed shows what it is for"
    assert [(each.part, each.rested) for each in episodes(history)] == [
        ("assembly", True),
        ("change", True),
        ("closing", False),
    ]


def test_measures_are_sums_over_the_changes(random_trials: RandomTrials) -> None:
    expected = {name: dict.fromkeys(MEASURES, 0) for name in random_trials.histories}
    for history in random_trials.histories.values():
        for row in oracle(history):
            if row["part"] == "change":
                sums = expected[history.trial.id]
                row |= {"episodes": 1, "rebalance_us": row["end_us"] - row["begin_us"]}
                sums |= {name: sums[name] + row[name] for name in MEASURES}
    table = trial_measures(random_trials.results)
    assert table.schema.simpleString() == TRIAL_MEASURES.simpleString()
    assert {row.pop("trial"): row for row in rows_of(table)} == expected
