"""A server before ZooKeeper 3.6, whose log does not list what goes, that forgets a session's id."""

from __future__ import annotations

from counterfeit import Counterfeit
from counterfeit_servers import crash, ids, keeps, unlisted

COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The log does not list what goes with a session (ZooKeeper before 3.6), and the id stays.",
    false=unlisted(keeps(ids)),
    honest=unlisted(crash),
)
