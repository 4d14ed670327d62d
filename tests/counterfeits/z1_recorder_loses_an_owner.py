"""A recorder that misses one owner znode altogether."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, recorded

from rebalance_lab.history.events import Event, Layer


def _kept(event: Event) -> bool:
    return event.layer is not Layer.REGISTRY or event.partition != 0


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The server is right; the recorder misses all that happens to partition 0, and what is left fits together.",
    false=recorded(crash, _kept),
    honest=crash,
)
