"""Z3: at each rest the members own what the articles publish.

A PHASE with `published` tells what each living member should own at the rest that ends it: for each,
in the order in which they joined, its partitions. It is compared with what the outside observer read
below /consumers/G/owners of the phase's group between the two. A rest is preceded by a quiet time:
who starts at the very moment of one comes after it. Of a rest that was missed nothing is said.

Witness: the PHASE, what was observed, and the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from rebalance_lab.checks.faults import not_violated, violated
from rebalance_lab.checks.lives import lives
from rebalance_lab.checks.model import About, Check, Finding
from rebalance_lab.checks.scope import next_rest
from rebalance_lab.history.events import Event, Kind, Layer, order
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: The partitions of each member, (topic, partition)s in order.
Rows = list[list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _Row:
    """A published row and what was found; `observed`: the reads, none where nobody looked."""

    phase: Event
    rest: Event
    observed: list[Event]
    published: Rows
    found: Rows
    strangers: list[str]

    @property
    def wrong(self) -> bool:
        return self.found != self.published or bool(self.strangers)


def judge(history: History) -> Finding:
    """Measures: `rows` compared, `count` of those that differ."""
    rows = [row for phase in _phases(history) if (row := _row(history, phase)) is not None]
    wrong = [row for row in rows if row.wrong]
    numbers = {"count": len(wrong), "rows": len(rows)}
    if wrong:
        first = wrong[0]
        why = f"at rest after phase {first.phase.of('name')} members own {_text(first.found)}"
        why += f"; published: {_text(first.published)}"
        if first.strangers:
            why += f"; {', '.join(first.strangers)} owns a partition too"
        return violated(why, (first.phase.id, *(event.id for event in first.observed), first.rest.id), numbers)
    nothing = None if rows else "no rest with an observation followed a published row"
    return not_violated(history, "at each rest members owned what is published", numbers, vacuous=nothing)


def _phases(history: History) -> list[Event]:
    return [event for event in events_of(history, Kind.PHASE) if event.of("published") is not None]


def _row(history: History, phase: Event) -> _Row | None:
    rest = next_rest(history, phase)
    if rest is None:
        return None
    latest: dict[str, Event] = {}
    prefix = f"/consumers/{phase.group}/owners/"
    for event in events_of(history, Kind.OBSERVED):
        path = str(event.of("path"))
        if path.startswith(prefix) and order(phase) < order(event) < order(rest):
            latest[path[len(prefix) :]] = event
    if not latest:
        return None
    owned = _owned(latest)
    living = [
        life.member
        for life in lives(history)
        if life.group == phase.group
        and life.started.at_us < rest.at_us
        and (life.gone is None or life.gone.at_us >= rest.at_us)
    ]
    return _Row(
        phase=phase,
        rest=rest,
        observed=list(latest.values()),
        published=_rows(phase.of("published")),
        found=[sorted(owned.get(member, ())) for member in living],
        strangers=sorted(set(owned) - set(living)),
    )


def _owned(observed: Mapping[str, Event]) -> dict[str, list[tuple[str, int]]]:
    """Member -> what it was seen to own: owners are thread ids."""
    found: dict[str, list[tuple[str, int]]] = {}
    for topic, event in observed.items():
        owners = event.of("owners")
        for partition, thread in (owners if isinstance(owners, dict) else {}).items():
            found.setdefault(str(thread).rpartition("-")[0], []).append((topic, int(partition)))
    return found


def _rows(published: object) -> Rows:
    return [sorted(its) for its in msgspec.convert(published, Rows)]


def _text(rows: Rows) -> str:
    return " ".join("{" + ", ".join(f"{topic}/{partition}" for topic, partition in row) + "}" for row in rows)


def _published(history: History) -> bool:
    return bool(_phases(history))


CHECK = Check(
    name="published_rows",
    compares=(Layer.OP,),
    meaning="At a rest the members did not own what the articles publish.",
    plants=("never-claim-last",),
    judge=judge,
    about=About.STATEMENT,
    applies=_published,
)
