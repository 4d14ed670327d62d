"""Z6: the read that should watch the brokers is refused."""

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS


def false(seed: int) -> History:
    history = trial("walkthrough", seed)
    asked = {
        event.id
        for event in history.events
        if event.kind is Kind.INVOKED and event.of("path") == BROKER_IDS and event.of("watch") is True
    }

    def refused(event: Event) -> Event:
        if event.kind is not Kind.OK or (event.actor, event.of("of")) not in asked:
            return event
        return replace(event, kind=Kind.FAILED_OP, detail={**(event.detail or {}), "error": "NoAuth"})

    return History(history.trial, tuple(map(refused, history.events)))


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="Each member asks at the right place for a watch on /brokers/ids. ZooKeeper refuses the read (NoAuth), so "
    "no watch is set, and the member goes on without it.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
