"""Z14: members that name no group register in the default one, and claim partitions in groups of their own."""

import msgspec
from counterfeit import Counterfeit, trial

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History

_OWNERS = "/consumers/default/owners"


def false(seed: int) -> History:
    history = trial("group-scope", seed)
    return History(history.trial, tuple(_moved(event) for event in history.events))


def _moved(event: Event) -> Event:
    """What is about a partition or an owner znode of `default` is about one of the member's own group instead."""
    path = str(event.of("path") or "")
    if _OWNERS not in path and (event.group != "default" or event.partition is None):
        return event
    own = f"own-{(event.member or event.actor)[-8:]}"
    detail = {**(event.detail or {}), "path": path.replace("/default/", f"/{own}/")} if path else event.detail
    return msgspec.structs.replace(event, group=own if event.group == "default" else event.group, detail=detail)


COUNTERFEIT = Counterfeit(
    claim="Z14",
    check="default_group",
    world="Members that name no group all register in one default group, but each owns partitions, and works on them, "
    "in a group of its own.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
