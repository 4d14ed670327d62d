"""Z7c: the cost of a change grows with the group, and not with its square."""

from __future__ import annotations

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from zkconsumer.contexts import Threads
from zkconsumer.group_view import GroupView

_THREADS = GroupView.threads


def herd(seed: int, members: int = 8) -> History:
    """Of 64 partitions, so that every member owns one: the curve of the ledger's trend."""
    settings = {"members": str(members), "partitions": "64", "fetcher_stop_ms": "0"}
    return trial("herd", seed, rules="shipped", settings=settings)


def sharing(seed: int, members: int = 8) -> History:
    """The herd's members share what they read of each other: a registration never changes."""
    known: dict[str, Threads] = {}

    async def threads(self: GroupView, consumer_id: str) -> Threads:
        if consumer_id == self._consumer_id or consumer_id not in known:
            known[consumer_id] = await _THREADS(self, consumer_id)
        return known[consumer_id]

    with patch.object(GroupView, "threads", threads):
        return herd(seed, members)


COUNTERFEIT = Counterfeit(
    claim="Z7c",
    check="herd_cost",
    world="Members on one host share a cache of registrations, as these never change: each is read once and not by "
    "everybody, so that a change costs reads in proportion to the group.",
    false=sharing,
    honest=herd,
)
