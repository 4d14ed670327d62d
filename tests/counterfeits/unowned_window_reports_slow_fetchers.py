"""unowned_window: members excuse a settling delay with fetchers that they report as slow."""

import unowned_window_settling_delay as settling
from counterfeit import Counterfeit
from msgspec.structs import replace

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History


def slow(event: Event) -> Event:
    if event.kind is not Kind.MEMBER_STARTED:
        return event
    return replace(event, detail={**(event.detail or {}), "fetcher_stop_ms": 10_000})


def false(seed: int) -> History:
    history = settling.false(seed)
    return History(history.trial, tuple(map(slow, history.events)))


COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Members wait ten seconds between release and claim. They report that their fetchers take ten seconds to "
    "stop, and these stop at once.",
    false=false,
    honest=settling.COUNTERFEIT.honest,
)
