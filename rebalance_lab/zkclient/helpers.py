"""Kafka's helpers on top of ZkClient (`kafka.utils.ZkUtils` of 0.8.2)."""

from __future__ import annotations

from collections.abc import Callable

from rebalance_lab.kernel import Kernel
from rebalance_lab.world.errors import NodeExists, NoNode
from rebalance_lab.zkclient.client import ZkClient


async def create_ephemeral(client: ZkClient, path: str, data: bytes, *, ephemeral: bool = True) -> None:
    """Create; where the parents are missing, make them (persistent, no data) and create again.

    Raises NodeExists. `ephemeral=False` is for a planted bug.
    """
    try:
        await client.create(path, data, ephemeral=ephemeral)
    except NoNode:
        await client.create_persistent(path[: path.rindex("/")], parents=True)
        await client.create(path, data, ephemeral=ephemeral)


async def create_ephemeral_expect_conflict(client: ZkClient, path: str, data: bytes, *, ephemeral: bool = True) -> None:
    """Like `create_ephemeral`; a znode that already holds just this data counts as ours: the
    reply to a create that was applied may have been lost. Its session is not compared.

    Raises NodeExists when it holds something else, or is gone again.
    """
    try:
        await create_ephemeral(client, path, data, ephemeral=ephemeral)
    except NodeExists:
        if await read_or_none(client, path) != data:
            raise


async def create_ephemeral_handle_bug(
    client: ZkClient,
    path: str,
    data: bytes,
    *,
    tasks: Kernel,
    backoff_ms: int,
    warn: Callable[[str], None],
    ephemeral: bool = True,
) -> None:
    """The loop for id znodes: a conflicting znode is taken for one of our own last session, and
    waited out, `backoff_ms` at a time, **without end** (faithful: the consumer's check always
    says "mine", so a second member with the same id hangs here; KAFKA-1387)."""
    while True:
        try:
            await create_ephemeral_expect_conflict(client, path, data, ephemeral=ephemeral)
        except NodeExists:
            if await read_or_none(client, path) is None:
                continue
            warn(
                f"I wrote this conflicted ephemeral node [{data.decode()}] at {path} a while back in a different"
                " session, hence I will backoff for this node to be deleted by Zookeeper and retry"
            )
            await tasks.sleep(backoff_ms * 1000)
        else:
            return


async def create_ephemeral_checked(client: ZkClient, path: str, data: bytes) -> None:
    """The same as 0.9 does it (KAFKA-1387): a conflicting znode is ours if our session made it.

    Raises NodeExists when another session did.
    """
    while True:  # ends, unless another process creates and deletes the znode each time
        try:
            await create_ephemeral(client, path, data)
        except NodeExists:
            stat = await client.exists(path)
            if stat is None:
                continue
            if stat.ephemeral_owner != client.session.session_id:
                raise
        return


async def read_or_none(client: ZkClient, path: str) -> bytes | None:
    """The data; None if there is no znode."""
    try:
        return (await client.read(path)).data
    except NoNode:
        return None


async def children_or_none(client: ZkClient, path: str) -> tuple[str, ...]:
    """The children; empty if there is no znode."""
    try:
        return (await client.children(path)).names
    except NoNode:
        return ()
