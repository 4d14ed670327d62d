"""`topics`: create, list, describe, alter and delete topics; or write the znodes that members need, without brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar, cast

import typer

from rebalance_lab.cli.brokers import MOST_PARTITIONS, MOST_REPLICAS, TIMEOUT_MS, TimeoutOption, with_cluster
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption, key_values
from rebalance_lab.cli.reassign import CancelOption, Reassign, ReassignOption, ToOption, reassign_of
from rebalance_lab.cli.terminal import answer, print_json, table
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.retries import with_retries
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.subjects.zk_group.live_topics import create_topic
from rebalance_lab.wire.kafka.config_kinds import ConfigSource, Operation, ResourceType
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from rebalance_lab.wire.kafka.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rebalance_lab.wire.kafka.messages.metadata import MetadataResponseTopic
from rebalance_lab.world.zk.connect_string import BadConnectString
from rebalance_lab.zkclient import ZkTimeoutException

AlterOption = Annotated[
    str | None, typer.Option("--alter", help="Change a topic's settings, or add partitions.", metavar="TOPIC")
]
PartitionsOption = Annotated[
    int | None,
    typer.Option(
        "--partitions",
        help="Number of partitions; with --alter, the new one. Default: the brokers'.",
        min=1,
        max=MOST_PARTITIONS,
    ),
]
ConfigOption = Annotated[
    list[str] | None,
    typer.Option("--config", help="With --create or --alter: a setting, by Kafka's name.", metavar="NAME=VALUE"),
]
DeleteConfigOption = Annotated[
    list[str] | None,
    typer.Option("--delete-config", help="With --alter: back to the brokers' default.", metavar="NAME"),
]

#: Znodes that --fixture writes, one at a time.
MOST_BROKERS = 10_000

T = TypeVar("T")

Work = Callable[[ClusterClient, LiveKernel], Coroutine[Any, Any, None]]


def topics(
    *,
    bootstrap: Annotated[
        str | None, typer.Option("--bootstrap", help="Addresses of brokers, by commas.", metavar="HOST:PORT[,…]")
    ] = None,
    zookeeper: Annotated[
        str | None, typer.Option("--zookeeper", help="With --fixture: the address of a ZooKeeper.", metavar="HOST:PORT")
    ] = None,
    create: Annotated[str | None, typer.Option("--create", help="Create a topic.", metavar="TOPIC")] = None,
    delete: Annotated[str | None, typer.Option("--delete", help="Delete a topic.", metavar="TOPIC")] = None,
    describe: Annotated[
        str | None, typer.Option("--describe", help="Who leads a topic, and its settings.", metavar="TOPIC")
    ] = None,
    alter: AlterOption = None,
    reassign: ReassignOption = None,
    to: ToOption = None,
    cancel: CancelOption = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all topics.")] = False,
    partitions: PartitionsOption = None,
    replication: Annotated[
        int | None,
        typer.Option("--replication", help="Number of replicas. Default: the brokers'.", min=1, max=MOST_REPLICAS),
    ] = None,
    config: ConfigOption = None,
    delete_config: DeleteConfigOption = None,
    fixture: Annotated[
        bool,
        typer.Option(
            "--fixture", help="With --create: write only the znodes of the topic and of brokers. No broker is needed."
        ),
    ] = False,
    brokers: Annotated[
        int, typer.Option("--brokers", help="With --fixture: number of broker znodes.", min=0, max=MOST_BROKERS)
    ] = 1,
    timeout_ms: TimeoutOption = TIMEOUT_MS,
    as_json: JsonOption = False,
) -> None:
    """Create, list, describe, alter, reassign or delete topics.

    With --fixture no brokers are needed: the znodes that consumers of 0.8 read
    are written to ZooKeeper. It is safe to repeat that.
    """
    options = (create, delete, describe, alter, reassign, list_all or None)
    if len([each for each in options if each is not None]) != 1:
        raise Failure("say what to do: one of --create, --delete, --describe, --alter, --reassign and --list")
    moved = reassign_of(reassign, to, cancel=cancel)
    settings = _settings(config, delete_config, create=create, alter=alter, fixture=fixture)
    if fixture:
        _write_fixture(zookeeper, create, partitions, brokers, as_json=as_json)
        return
    altered = _altered(alter, partitions, settings, created=create is not None)
    if bootstrap is None:
        raise Failure("--bootstrap is missing; without brokers, --create with --fixture and --zookeeper writes znodes")
    new = _NewTopic(create, partitions or -1, replication or -1) if create is not None else None
    work = _work(new, delete, describe, altered, moved, settings, timeout_ms, as_json=as_json)
    with_cluster(bootstrap, work, timeout_ms=timeout_ms)


@dataclass(frozen=True, slots=True)
class _NewTopic:
    """-1 leaves a number to the brokers."""

    name: str
    partitions: int
    replication: int


#: name -> the value that it gets; None for the brokers' default.
Settings = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Altered:
    """`partitions`: how many the topic is to have; None leaves them."""

    name: str
    partitions: int | None
    settings: Settings


#: Why a topic never gets fewer partitions (claim P3).
WHY_NOT_FEWER = (
    "Kafka never removes partitions: if they were deleted, their messages would be lost; in other partitions, these "
    "would stand behind newer ones of their keys; and to keep the order, the whole topic would have to be written anew"
)


def _altered(name: str | None, partitions: int | None, settings: Settings, *, created: bool) -> _Altered | None:
    """Raises Failure for options that do not go together."""
    if name is None:
        if partitions is not None and not created:
            raise Failure("--partitions goes with --create or --alter")
        return None
    if not settings and partitions is None:
        raise Failure("--alter needs --config, --delete-config or --partitions")
    return _Altered(name, partitions, settings)


def _settings(
    config: Sequence[str] | None,
    delete_config: Sequence[str] | None,
    *,
    create: str | None,
    alter: str | None,
    fixture: bool,
) -> Settings:
    """Raises Failure for options that do not go together."""
    if config and (fixture or (create is None and alter is None)):
        raise Failure("--config goes with --create or --alter, and not with --fixture")
    if delete_config and alter is None:
        raise Failure("--delete-config goes with --alter")
    found = key_values(config, "--config")
    both = sorted(found.keys() & set(delete_config or ()))
    if both:
        raise Failure(f"{both[0]} is both in --config and in --delete-config")
    return {**found, **dict.fromkeys(delete_config or ())}


def _work(
    create: _NewTopic | None,
    delete: str | None,
    describe: str | None,
    alter: _Altered | None,
    moved: Reassign | None,
    settings: Settings,
    timeout_ms: int,
    *,
    as_json: bool,
) -> Work:
    async def work(client: ClusterClient, live: LiveKernel) -> None:
        await client.refresh([])  # without retries: an address that is wrong stays wrong
        topics = _Topics(client, live, timeout_ms)
        if create is not None:
            await topics.create(create, settings)
            print_json({"created": create.name}) if as_json else print(f"created topic {create.name}")
        elif delete is not None:
            await topics.delete(delete)
            print_json({"deleted": delete}) if as_json else print(f"deleted topic {delete}")
        elif alter is not None:
            await topics.alter(alter)
            print_json({"altered": alter.name}) if as_json else print(f"altered topic {alter.name}")
        elif moved is not None:
            await moved.work(client, live, timeout_ms, as_json=as_json)
        elif describe is not None:
            _show(await topics.described(describe), await topics.overrides(describe), as_json=as_json)
        else:
            names = await topics.names()
            print_json({"topics": names}) if as_json else print("\n".join(names) or "there are no topics")

    return work


class _Result(Protocol):
    """What a broker answers about one topic."""

    error_code: int
    error_message: str | None


class _Topics:
    """What is asked of brokers. One that does not know a topic may not have heard of it yet, and is asked again. Every
    method raises RefusedByBroker, and NoBroker if `timeout_ms` was not enough."""

    def __init__(self, client: ClusterClient, live: LiveKernel, timeout_ms: int) -> None:
        self._client = client
        self._live = live
        self._timeout_ms = timeout_ms

    async def create(self, topic: _NewTopic, settings: Settings) -> None:
        new = CreatableTopic(
            name=topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication,
            assignments=(),
            configs=tuple(CreatableTopicConfig(name=name, value=value) for name, value in settings.items()),
        )
        request = CreateTopicsRequest(topics=(new,), timeout_ms=self._timeout_ms)
        await self._change(topic.name, lambda: self._client.ask_controller(request), lambda answer: answer.topics)

    async def delete(self, topic: str) -> None:
        request = DeleteTopicsRequest(topic_names=(topic,), timeout_ms=self._timeout_ms)
        await self._change(topic, lambda: self._client.ask_controller(request), lambda answer: answer.responses)

    async def alter(self, topic: _Altered) -> None:
        """Raises Failure for fewer partitions than now. Then the settings stay as they are, too."""
        if topic.partitions is not None:
            await self._grow(topic.name, topic.partitions)
        if topic.settings:
            await self._alter_settings(topic.name, topic.settings)

    async def _grow(self, topic: str, partitions: int) -> None:
        wanted = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=(wanted,), timeout_ms=self._timeout_ms, validate_only=False)
        try:
            await self._change(topic, lambda: self._client.ask_controller(request), lambda answer: answer.results)
        except RefusedByBroker as error:
            fewer = error.code is ErrorCode.INVALID_PARTITIONS
            if fewer and partitions < len((await self.described(topic)).partitions):
                raise Failure(f"{error}; {WHY_NOT_FEWER}") from error
            raise

    async def _alter_settings(self, topic: str, settings: Settings) -> None:
        changes = tuple(
            AlterableConfig(
                name=name, config_operation=Operation.DELETE if value is None else Operation.SET, value=value
            )
            for name, value in settings.items()
        )
        resource = AlterConfigsResource(resource_type=ResourceType.TOPIC, resource_name=topic, configs=changes)
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        await self._change(topic, lambda: self._client.ask_any(request), lambda answer: answer.responses)

    async def described(self, topic: str) -> MetadataResponseTopic:
        async def ask() -> MetadataResponseTopic:
            (found,) = await self._client.refresh([topic])
            if found.error_code:
                raise RefusedByBroker(found.error_code, f"topic {topic}")
            return found

        return await self._patiently(ask)

    async def overrides(self, topic: str) -> dict[str, str]:
        """The settings of a topic that are its own."""
        resource = DescribeConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=topic, configuration_keys=None
        )

        async def ask() -> DescribeConfigsResult:
            (result,) = (await self._client.ask_any(DescribeConfigsRequest(resources=(resource,)))).results
            _check(result, f"settings of topic {topic}")
            return cast(DescribeConfigsResult, result)

        result = await self._patiently(ask)
        return {
            each.name: each.value or "" for each in result.configs if each.config_source == ConfigSource.TOPIC_CONFIG
        }

    async def names(self) -> list[str]:
        return sorted(each.name or "" for each in await self._patiently(lambda: self._client.refresh(None)))

    async def _change(
        self, topic: str, ask: Callable[[], Awaitable[Any]], results: Callable[[Any], Sequence[_Result]]
    ) -> None:
        """Not repeated if nobody knows whether a broker has made the change."""

        async def change() -> None:
            (result,) = results(await ask())
            _check(result, f"topic {topic}")

        await self._patiently(change, repeatable=False)

    async def _patiently(self, ask: Callable[[], Awaitable[T]], *, repeatable: bool = True) -> T:
        return await with_retries(
            self._live.kernel, ask, what="the cluster", timeout_ms=self._timeout_ms, repeatable=repeatable
        )


def _check(result: _Result, what: str) -> None:
    """Raises RefusedByBroker."""
    if result.error_code:
        raise RefusedByBroker(result.error_code, what, result.error_message)


def _show(topic: MetadataResponseTopic, overrides: Mapping[str, str], *, as_json: bool) -> None:
    rows = [
        {
            "partition": each.partition_index,
            "leader": each.leader_id,
            "leader_epoch": each.leader_epoch,
            "replicas": each.replica_nodes,
            "isr": each.isr_nodes,
        }
        for each in topic.partitions
    ]
    if as_json:
        print_json({"topic": topic.name, "partitions": rows, "settings": overrides})
        return
    shown = [[_text(value) for value in row.values()] for row in rows]
    columns = ("partition", "leader", "leader epoch", "replicas", "in sync")
    answer().print(table(f"topic {topic.name}", columns, shown, numbers=("partition", "leader", "leader epoch")))
    for name, value in sorted(overrides.items()):
        print(f"{name}={value}")


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _write_fixture(
    zookeeper: str | None, create: str | None, partitions: int | None, brokers: int, *, as_json: bool
) -> None:
    if zookeeper is None or create is None or partitions is None:
        raise Failure("--fixture needs --zookeeper, --create and --partitions")
    with spoken():
        try:
            created = create_topic(zookeeper, create, partitions, brokers=brokers)
        except BadConnectString as error:
            raise Failure(f"--zookeeper {error}") from error
        except ValueError as error:
            raise Failure(f"--create {error}") from error
        except ZkTimeoutException as error:
            raise Failure(str(error)) from error
    if as_json:
        print_json({"created": created})
    else:
        print("\n".join(f"created {path}" for path in created) or "nothing to do: everything exists")
