"""A small tool of somebody's: which partitions of a ZooKeeper-era consumer group have no owner?"""

from __future__ import annotations

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError


def unowned(connect: str, group: str, topic: str, partitions: int) -> list[int]:
    """The partitions without an owner znode, sorted. The client tries every server of `connect`."""
    client = KazooClient(connect)
    client.start(timeout=30)
    try:
        owned = {int(name) for name in client.get_children(f"/consumers/{group}/owners/{topic}")}
    except NoNodeError:
        owned = set()
    finally:
        client.stop()
        client.close()
    return [partition for partition in range(partitions) if partition not in owned]
