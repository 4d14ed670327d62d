"""A recorder that records the end of a session, and not what went with it."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, recorded

from rebalance_lab.history.events import Event, Kind


def _kept(event: Event) -> bool:
    return event.kind is not Kind.DELETED or event.of("with_session") is not True or event.partition is None


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The server is right; the recorder loses the deletions of the owner znodes that go with a session.",
    false=recorded(crash, _kept),
    honest=crash,
)
