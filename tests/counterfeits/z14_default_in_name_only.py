"""Z14: members that say they are in the default group, each in a group of its own."""

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from zkconsumer.rules import DEFAULT_GROUP


def false(seed: int) -> History:
    history = trial("group-scope", seed, plant="group-of-its-own")
    nameless = {
        event.actor
        for event in history.events
        if event.kind is Kind.MEMBER_STARTED and event.of("group_given") is False
    }
    told = (
        replace(event, group=DEFAULT_GROUP) if event.actor in nameless and event.group is not None else event
        for event in history.events
    )
    return History(history.trial, tuple(told))


COUNTERFEIT = Counterfeit(
    claim="Z14",
    check="default_group",
    world="Members that name no group report that they are in group `default`, and each is registered in a group of "
    "its own.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
