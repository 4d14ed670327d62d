"""unowned_window: the settling delay beside a member with patient settings."""

import msgspec
from counterfeit import Counterfeit
from unowned_window_settling_delay import COUNTERFEIT as SAME

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History


def _false(seed: int) -> History:
    history = SAME.false(seed)
    events = [
        msgspec.structs.replace(event, detail={**(event.detail or {}), "rebalance_max_retries": 100})
        if event.kind is Kind.MEMBER_STARTED and event.actor == "m3"
        else event
        for event in history.events
    ]
    return History(history.trial, tuple(events))


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Members wait ten seconds between release and claim. One of them has rebalance.max.retries=100, so that its "
    "rebalance may take a minute; the others' partitions wait ten seconds as well.",
    false=_false,
    honest=SAME.honest,
)
