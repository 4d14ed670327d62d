"""Z14: members register in the default group first, and then move to a group of their own."""

import z14_default_in_name_only as own_groups
from counterfeit import Counterfeit
from msgspec.structs import replace

from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History, merge
from zkconsumer.rules import DEFAULT_GROUP


def false(seed: int) -> History:
    history = own_groups.false(seed)
    nameless = {
        event.member
        for event in history.events
        if event.kind is Kind.MEMBER_STARTED and event.of("group_given") is False
    }
    log = sorted((event for event in history.events if event.layer is Layer.REGISTRY), key=lambda event: event.n)
    told: list[Event] = []
    for event in log:
        moved = len(told) - event.n
        if event.kind is Kind.CREATED and event.member in nameless and event.partition is None:
            path = f"/consumers/{DEFAULT_GROUP}/ids/{event.member}"
            for kind in (Kind.CREATED, Kind.DELETED):
                came = replace(event, kind=kind, group=DEFAULT_GROUP, detail={**(event.detail or {}), "path": path})
                told.append(_later(came, len(told), moved))
                moved += 1
        told.append(_later(event, len(told), moved))
    others = [event for event in history.events if event.layer is not Layer.REGISTRY]
    return History(history.trial, merge([*others, *told]))


def _later(event: Event, n: int, moved: int) -> Event:
    """As the event n of the registry, `moved` transactions later."""
    return replace(event, n=n, zxid=(event.zxid or 0) + moved)


COUNTERFEIT = Counterfeit(
    claim="Z14",
    check="default_group",
    world="Two members that name no group register in group `default`, delete these ids at once, and each works in a "
    "group of its own.",
    false=false,
    honest=own_groups.COUNTERFEIT.honest,
)
