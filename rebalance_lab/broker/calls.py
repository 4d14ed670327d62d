"""What answers one API: the versions that it serves, and a function of the request and of the broker's parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec

from rebalance_lab.broker.metadata_cache import MetadataCache
from rebalance_lab.broker.producer_ids import ProducerIds
from rebalance_lab.broker.replicas import Replicas
from rebalance_lab.broker.topic_store import TopicStore
from rebalance_lab.kernel import Kernel, RandomStream, TimedOut
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.calls import Call
from rebalance_lab.wire.kafka.schema import Message, Versions

Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A broker's settings, under Kafka's names and with the defaults of 3.9.1. `rack`: None if it has none."""

    broker_id: int
    num_partitions: Count = 1
    default_replication_factor: Count = 1
    auto_create_topics_enable: bool = True
    delete_topic_enable: bool = True
    min_insync_replicas: Count = 1
    unclean_leader_election_enable: bool = False
    rack: str | None = None


@dataclass(slots=True, kw_only=True)
class Parts:
    """The parts of a running broker that requests are answered from.

    `advertised`: the versions of each API that ApiVersions names. `is_controller`: whether it is the controller now.
    """

    config: BrokerConfig
    advertised: Mapping[ApiKey, Versions]
    cluster_id: str
    tasks: Kernel
    random: RandomStream
    metadata: MetadataCache
    topics: TopicStore
    replicas: Replicas
    producer_ids: ProducerIds
    is_controller: Callable[[], bool]

    async def until_metadata(self, ready: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait for the metadata cache to be as wanted. False: it was not in time."""
        try:
            async with self.tasks.timeout(timeout_ms * 1000, "metadata"):
                while not ready():
                    await self.metadata.changed
        except TimedOut:
            return False
        return True

    async def topics_without_leaders(self, wanted: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        """Wait until all these partitions have a leader. Returns the topics of those that have none in time; all, if
        there is no time."""

        def waiting() -> set[str]:
            leader_of = self.metadata.leader_of
            return {name for name, them in wanted.items() if any(leader_of(name, each) is None for each in them)}

        if timeout_ms <= 0:
            return set(wanted)
        await self.until_metadata(lambda: not waiting(), timeout_ms)
        return waiting()


Handle = Callable[[Parts, Call], Awaitable[Message | None]]


@dataclass(frozen=True, slots=True)
class Handler:
    """`handle`: the response; None if the client waits for none."""

    key: ApiKey
    versions: Versions
    handle: Handle
