"""Partition: one ZooKeeper server is cut off from the others, together with the clients connected to it.

Its clients still reach it until it has heard nothing from its leader for the sync limit and stops
serving. The others go on without it, and end the sessions of its clients, which may not learn of it. The
proof is that the server was seen not serving. Only docker can cut servers off from each other.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from rebalance_lab.history.fault_kinds import FaultKind
from rebalance_lab.trials.lab import AnyLab, Injection
from rebalance_lab.trials.stage import TrialError

PARTITION = FaultKind(
    name="partition",
    noun="partition",
    suffers="is cut off from the other ZooKeeper servers",
    many="are cut off from the other ZooKeeper servers",
    band="partitioned",
    begins="partitions",
    ends="heals",
    alone="Networks split, and each side goes on without the other.",
)


@runtime_checkable
class PartitionableServers(Protocol):
    """What a world must offer in addition to `trials.stage.Servers`."""

    async def partition(self, name: str) -> str: ...
    async def rejoin(self, name: str) -> str: ...
    async def serving(self, name: str) -> bool: ...


async def partition(lab: AnyLab, server: str, duration_ms: int) -> None:
    """Cut off `server` from its peers for `duration_ms`, and record the proof."""
    servers = lab.servers
    if not isinstance(servers, PartitionableServers):
        raise TrialError(f"{server} cannot be cut off from its peers here: use --world containers")
    fault = Injection(lab, PARTITION, server, planned=duration_ms)
    how = await servers.partition(server)
    await lab.sleep_ms(duration_ms)
    if not await servers.serving(server):
        fault.bit(f"{how}; {server} does not serve")
    await servers.rejoin(server)
    fault.ended()
