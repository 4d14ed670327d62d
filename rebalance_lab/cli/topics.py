"""`topics`: create, list, describe and delete topics; or write the znodes that members need, without brokers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

from rebalance_lab.cli.brokers import with_cluster
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import answer, print_json, table
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.subjects.zk_group.live_topics import create_topic
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.delete_topics import DeleteTopicsRequest
from rebalance_lab.wire.kafka.messages.metadata import MetadataResponseTopic
from rebalance_lab.world.zk.connect_string import BadConnectString
from rebalance_lab.zkclient import ZkTimeoutException

CREATE_TIMEOUT_MS = 30_000

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
    describe: Annotated[str | None, typer.Option("--describe", help="Who leads a topic.", metavar="TOPIC")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all topics.")] = False,
    partitions: Annotated[
        int | None, typer.Option("--partitions", help="Number of partitions. Default: the brokers'.", min=1)
    ] = None,
    replication: Annotated[
        int | None, typer.Option("--replication", help="Number of replicas. Default: the brokers'.", min=1)
    ] = None,
    fixture: Annotated[
        bool,
        typer.Option("--fixture", help="With --create: write the znodes of the topic and of brokers, without any."),
    ] = False,
    brokers: Annotated[
        int, typer.Option("--brokers", help="With --fixture: number of broker znodes, with ids from 0.", min=0)
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Create, list, describe or delete topics.

    With --fixture no brokers are needed: the znodes that consumers of 0.8 read
    are written to ZooKeeper. It is safe to repeat that.
    """
    wanted = [option for option in (create, delete, describe, list_all or None) if option is not None]
    if len(wanted) != 1:
        raise Failure("say what to do: one of --create, --delete, --describe and --list")
    if fixture:
        _write_fixture(zookeeper, create, partitions, brokers, as_json=as_json)
        return
    if bootstrap is None:
        raise Failure("--bootstrap is missing; without brokers, --create with --fixture and --zookeeper writes znodes")
    with_cluster(bootstrap, _work(create, delete, describe, partitions, replication, as_json=as_json))


def _work(
    create: str | None,
    delete: str | None,
    describe: str | None,
    partitions: int | None,
    replication: int | None,
    *,
    as_json: bool,
) -> Work:
    async def work(client: ClusterClient, _live: LiveKernel) -> None:
        if create is not None:
            await _create(client, create, partitions or -1, replication or -1)
            print_json({"created": create}) if as_json else print(f"created topic {create}")
        elif delete is not None:
            await _delete(client, delete)
            print_json({"deleted": delete}) if as_json else print(f"deleted topic {delete}")
        elif describe is not None:
            (found,) = await client.refresh([describe])
            if found.error_code:
                raise RefusedByBroker(found.error_code, f"topic {describe}")
            _show(found, as_json=as_json)
        else:
            names = sorted(each.name or "" for each in await client.refresh(None))
            print_json({"topics": names}) if as_json else print("\n".join(names) or "there are no topics")

    return work


async def _create(client: ClusterClient, topic: str, partitions: int, replication: int) -> None:
    new = CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=replication, assignments=(), configs=()
    )
    response = await client.ask_controller(CreateTopicsRequest(topics=(new,), timeout_ms=CREATE_TIMEOUT_MS))
    (result,) = response.topics
    if result.error_code:
        raise RefusedByBroker(result.error_code, f"topic {topic}", result.error_message)


async def _delete(client: ClusterClient, topic: str) -> None:
    response = await client.ask_controller(DeleteTopicsRequest(topic_names=(topic,), timeout_ms=CREATE_TIMEOUT_MS))
    (result,) = response.responses
    if result.error_code:
        raise RefusedByBroker(result.error_code, f"topic {topic}", result.error_message)


def _show(topic: MetadataResponseTopic, *, as_json: bool) -> None:
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
        print_json({"topic": topic.name, "partitions": rows})
        return
    shown = [[_text(value) for value in row.values()] for row in rows]
    columns = ("partition", "leader", "leader epoch", "replicas", "in sync")
    answer().print(table(f"topic {topic.name}", columns, shown, numbers=("partition", "leader", "leader epoch")))


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
