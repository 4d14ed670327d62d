"""Generation one: the consumer of Kafka 0.8, which coordinates through ZooKeeper alone.

`zkconsumer.Consumer` joins a group on a real ZooKeeper (docs/python.md).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebalance_lab.roles.consumer import BadConnectString, Consumer, NotLeft, Partitions, ZkTimeoutException

__all__ = ["BadConnectString", "Consumer", "NotLeft", "Partitions", "ZkTimeoutException"]


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: the protocol imports this package, too, and knows no world."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("rebalance_lab.roles.consumer"), name)
