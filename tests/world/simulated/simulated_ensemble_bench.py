"""An ensemble of three simulated servers, for the tests of this room."""

from __future__ import annotations

from typing import Any

from simulated_bench import Bench

from rebalance_lab.world.ports import SessionEventKind, ZooKeeper
from rebalance_lab.world.simulated.settings import ServerSettings
from rebalance_lab.world.simulated.tree import Tree

THREE = ("z1", "z2", "z3")
EPOCH = 1 << 32


def three(seed: int = 1, **settings: Any) -> Bench:
    return Bench(seed, servers=THREE, settings=ServerSettings(**settings))


def znodes(tree: Tree) -> dict[str, object]:
    return {path: (node.node(), node.children()) for path, node in tree.nodes.items()}


def agree(bench: Bench) -> bool:
    """All servers have applied the same."""
    trees = [znodes(server.tree) for server in bench.zookeeper._ensemble.servers.values()]
    return all(tree == trees[0] for tree in trees)


async def kinds(session: ZooKeeper, count: int) -> list[SessionEventKind]:
    return [(await session.events.get()).kind for _ in range(count)]


async def until_led(bench: Bench) -> str:
    while (leader := bench.zookeeper.leader) is None:
        await bench.sleep(0.01)
    return leader
