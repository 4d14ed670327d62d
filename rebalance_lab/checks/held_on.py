"""What a process still believed in, or worked on, when an attempt of its rebalance claimed (for claim Z5a)."""

from __future__ import annotations

from collections.abc import Sequence

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.intervals import Interval
from rebalance_lab.history.views import beliefs, effects, once


def believed_on(history: History, began: Event, claim: Event, reply: int | None) -> Interval | None:
    """A belief from before the ATTEMPT_BEGAN that had not ended when the process heard of its `claim`.

    `reply`: n of the process's event that says so. Without it the times decide: the belief ended more than 2 ms
    after the claim.
    """
    for one in _by_actor(history)[0].get(began.actor, ()):
        if one.begin[1] >= began.n:
            continue
        if one.end is not None and one.end[0] == began.actor and reply is not None:
            later = one.end[1] > reply
        else:
            later = not clock_drifted(history) and one.end_us > claim.at_us + TOLERANCE_US
        if later:
            return one
    return None


def worked_on(history: History, claim: Event, actor: str) -> Interval | None:
    """A run of work that began before a claim of the process and ended after it, each by more than 2 ms."""
    if clock_drifted(history):
        return None
    runs = _by_actor(history)[1].get(actor, ())
    return next(
        (run for run in runs if run.begin_us + TOLERANCE_US < claim.at_us and claim.at_us < run.end_us - TOLERANCE_US),
        None,
    )


@once
def _by_actor(history: History) -> tuple[dict[str, list[Interval]], dict[str, list[Interval]]]:
    """Beliefs and runs of work of each process."""
    return _grouped(beliefs(history)), _grouped(effects(history))


def _grouped(intervals: Sequence[Interval]) -> dict[str, list[Interval]]:
    found: dict[str, list[Interval]] = {}
    for one in intervals:
        found.setdefault(one.begin[0], []).append(one)
    return found
