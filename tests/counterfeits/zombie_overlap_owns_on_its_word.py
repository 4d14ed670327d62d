"""zombie_overlap: a zombie that reports that it owns a partition, and has nothing in the registry."""

from __future__ import annotations

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.history.events import LAYER_OF, Kind
from rebalance_lab.history.files import History


def _false(seed: int) -> History:
    history = trial("zombie", seed)
    ended = next(event for event in history.events if event.kind is Kind.FAULT_ENDED)
    later = (event for event in history.events if event.actor == ended.of("target") and event.at_us >= ended.at_us)
    first = next(event for event in later if event.kind is Kind.WORKED)
    owned = msgspec.structs.replace(first, kind=Kind.OWNED, layer=LAYER_OF[Kind.OWNED])
    return History(history.trial, tuple(owned if event.id == first.id else event for event in history.events))


COUNTERFEIT = Counterfeit(
    claim=None,
    check="zombie_overlap",
    world="A member wakes after its session has ended and reports at once, before it works, that it owns a partition, "
    "as one with a new session would. It has no new session and no owner znode, and works beside its successor.",
    false=_false,
    honest=lambda seed: trial("zombie", seed, control=True),
)
