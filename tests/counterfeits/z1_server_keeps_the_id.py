"""A server that forgets a session's id when it ends."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, ids, keeps

COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="A session's end frees all partitions, and the id stays: the others deal partitions to the dead.",
    false=keeps(ids),
    honest=crash,
)
