"""Z6: a member watches the brokers in another session than the one in which it is registered."""

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS


def _watches(event: Event) -> bool:
    return event.kind is Kind.INVOKED and event.of("path") == BROKER_IDS and event.of("watch") is True


def false(seed: int) -> History:
    history = trial("walkthrough", seed)
    rebalanced: set[str] = set()
    thrown_away: set[EventId] = set()
    for event in sorted(history.events, key=lambda event: event.n):
        if event.kind is Kind.REBALANCE_BEGAN:
            rebalanced.add(event.actor)
        elif _watches(event) and event.actor not in rebalanced:
            thrown_away.add(event.id)

    def forged(event: Event) -> Event:
        if event.id in thrown_away or (event.kind is Kind.OK and (event.actor, event.of("of")) in thrown_away):
            return replace(event, session=f"{event.session}f")
        if _watches(event):
            return replace(event, detail={**(event.detail or {}), "watch": False})
        return event

    return History(history.trial, tuple(map(forged, history.events)))


COUNTERFEIT = Counterfeit(
    claim="Z6",
    check="startup_order",
    world="Each member watches /brokers/ids at the right place, but in a second session that it drops at once, with "
    "its watches. In the session of its registration it never watches the brokers.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
