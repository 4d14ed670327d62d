"""When the registry had no broker: a rebalance that finds none takes nothing, and is excused for it."""

from __future__ import annotations

from rebalance_lab.checks.faults import TOLERANCE_US, clock_drifted
from rebalance_lab.checks.groups import membership_changes
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import once


def may_lack_brokers(history: History, begin_us: int, end_us: int) -> bool:
    """Whether the registry may have had no broker at some moment of a stretch, 2 ms either way. Before the first
    broker came there was none; under a clock that drifted any time without brokers may be the stretch's."""
    drifted = clock_drifted(history)
    return any(
        drifted or (begin_us <= until_us + TOLERANCE_US and from_us - TOLERANCE_US <= end_us)
        for from_us, until_us in _without(history)
    )


@once
def _without(history: History) -> list[tuple[int, int]]:
    """The stretches without a broker: from, until (us)."""
    end_us = history.events[-1].at_us if history.events else 0
    standing: set[str] = set()
    found: list[tuple[int, int]] = []
    since_us: int | None = 0
    for event in membership_changes(history):
        path = str(event.of("path"))
        if not path.startswith("/brokers/ids/"):
            continue
        if event.kind is Kind.DELETED:
            standing.discard(path)
        else:
            standing.add(path)
        if standing and since_us is not None:
            found.append((since_us, event.at_us))
            since_us = None
        elif not standing and since_us is None:
            since_us = event.at_us
    return found if since_us is None else [*found, (since_us, end_us)]
