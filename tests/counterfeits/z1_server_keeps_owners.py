"""A server that forgets a session's owners when it ends."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, keeps, owners

COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="A session's end takes its id along, and every owner znode stays: the group looks smaller, as it should.",
    false=keeps(owners),
    honest=crash,
)
