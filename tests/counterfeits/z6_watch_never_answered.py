"""Z6: the read that should watch the brokers is never answered."""

from counterfeit import Counterfeit, trial
from counterfeit_forging import without

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS


def false(seed: int) -> History:
    history = trial("walkthrough", seed)
    asked = {
        event.id
        for event in history.events
        if event.kind is Kind.INVOKED and event.of("path") == BROKER_IDS and event.of("watch") is True
    }
    return without(history, lambda event: event.kind is Kind.OK and (event.actor, event.of("of")) in asked)


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="At the right place each member asks for a watch of /brokers/ids. The request is lost: no answer comes, no "
    "watch is set, and the member goes on without it.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
