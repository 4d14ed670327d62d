"""Z6: members with a topic filter do not report it, and do not watch the topics."""

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

from rebalance_lab.checks.startup_order import TOPICS
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History


def honest(seed: int) -> History:
    return trial("walkthrough", seed, settings={"filter": "true"})


def false(seed: int) -> History:
    history = honest(seed)

    def static(event: Event) -> Event:
        if event.kind is Kind.MEMBER_STARTED:
            return replace(event, detail={**(event.detail or {}), "pattern": "static"})
        if event.kind is Kind.INVOKED and event.of("path") == TOPICS and event.of("watch") is True:
            return replace(event, detail={**(event.detail or {}), "watch": False})
        return event

    return History(history.trial, tuple(map(static, history.events)))


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="Members report that they subscribe to topics by name, and do not watch /brokers/topics. Their registrations "
    "in ZooKeeper have a white list.",
    false=false,
    honest=honest,
)
