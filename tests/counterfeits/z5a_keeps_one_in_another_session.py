"""Z5a: a member gives one partition up after its first claim; its znode stands in a second session."""

from __future__ import annotations

import msgspec
from counterfeit import Counterfeit
from z5a_releases_one_after_its_first_claim import COUNTERFEIT as LATE

from rebalance_lab.checks.model import Outcome
from rebalance_lab.checks.order_in_rebalance import CHECK
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History


def _late(history: History) -> object:
    """The path of an owner znode that was given up too late; None where there is none."""
    finding = CHECK.judge(history)
    if finding.outcome is not Outcome.VIOLATED:
        return None
    by_id = {event.id: event for event in history.events}
    _, kept, last = (by_id[each] for each in finding.witness)
    return (last if last.kind is Kind.DELETED else kept).of("path")


def _moved(event: Event) -> Event:
    return msgspec.structs.replace(event, session=f"{event.session}f")


def _false(seed: int) -> History:
    """What is given up late, in a session that no CONNECTED names."""
    history = LATE.false(seed)
    own = {event.session for event in history.events if event.kind is Kind.CONNECTED}
    path = _late(history)
    return History(
        history.trial,
        tuple(
            _moved(event)
            if event.layer is Layer.REGISTRY and event.of("path") == path and event.session in own
            else event
            for event in history.events
        ),
    )


COUNTERFEIT = Counterfeit(
    claim="Z5a",
    check="order_in_rebalance",
    world="Members have a second session, of which no event tells, and give up what they claimed in it only after the "
    "first claim of the next rebalance.",
    false=_false,
    honest=LATE.honest,
)
