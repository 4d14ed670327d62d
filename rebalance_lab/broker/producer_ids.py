"""Ids for idempotent producers, in blocks of a thousand that brokers take from ZooKeeper (`ProducerIdsBlock`,
`ZkProducerIdManager`, Kafka 3.9.1)."""

from __future__ import annotations

import msgspec

from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import PRODUCER_ID_BLOCK
from rebalance_lab.world.errors import BadVersion
from rebalance_lab.zkclient.pipelined import PipelinedClient

BLOCK_SIZE = 1000


class _Block(msgspec.Struct, frozen=True):
    """`/latest_producer_id_block`. The numbers are texts."""

    version: int
    broker: int
    block_start: str
    block_end: str


class ProducerIds:
    """No id is given twice in a cluster. What is left of a block is lost when its broker ends."""

    def __init__(self, tasks: Kernel, client: PipelinedClient, broker_id: int) -> None:
        self._client = client
        self._broker_id = broker_id
        self._left = iter(range(0))
        self._taking = tasks.lock("producer ids")

    async def next_id(self) -> int:
        """Raises KafkaException if the block in ZooKeeper cannot be read, and SessionExpired."""
        async with self._taking:
            found = next(self._left, None)
            if found is None:
                self._left = iter(await self._next_block())
                found = next(self._left)
            return found

    async def _next_block(self) -> range:
        """The block after the last one that was taken. If the reply to its taking is lost, it is given up."""
        await self._client.create_if_missing(PRODUCER_ID_BLOCK)
        while True:  # ends, unless other brokers take a block each time
            node = (await self._client.ask(lambda session: session.get(PRODUCER_ID_BLOCK))).value
            first = _end(node.data) + 1
            block = range(first, first + BLOCK_SIZE)
            payload = msgspec.json.encode(_Block(1, self._broker_id, str(block.start), str(block.stop - 1)))
            version = node.stat.version
            try:
                await self._client.ask(
                    lambda session, data=payload, version=version: session.set(  # type: ignore[misc]
                        PRODUCER_ID_BLOCK, data, version=version
                    )
                )
            except BadVersion:
                continue
            return block


def _end(data: bytes) -> int:
    """The last id of a block; -1 if none has been taken."""
    if not data:
        return -1
    try:
        return int(msgspec.json.decode(data, type=_Block).block_end)
    except (msgspec.DecodeError, ValueError) as error:
        raise KafkaException(f"{PRODUCER_ID_BLOCK} holds {data[:200]!r}: {error}") from None
