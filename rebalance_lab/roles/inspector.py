"""The role of an inspector, which looks at a cluster from outside, again and again.

Each look is a pair of events: INVOKED, then OK with what `history.duties.LOOK` says, or FAILED_OP. It reads the znodes
in a ZooKeeper session of its own, then asks each registered broker, on a connection of its own, for the metadata of all
topics. A look takes some milliseconds, so one during a change may show a part of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.history.duties import LOOK
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.kernel import Flag, Future
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    DELETE_TOPICS,
    TOPIC_CONFIGS,
    topic_config_path,
    topic_path,
)
from rebalance_lab.world.errors import NoNode, SessionExpired
from rebalance_lab.world.network import Address, NetworkError
from rebalance_lab.world.ports import Children, Environment, Node, Reply, ZooKeeper
from rebalance_lab.zkclient.pipelined import Answer, PipelinedClient, Request

T = TypeVar("T")

#: Of all of these the children are read; of `/admin` too, where requests to the controller are.
ROOTS = (BROKER_IDS, BROKER_TOPICS, DELETE_TOPICS, TOPIC_CONFIGS, "/admin")


class InspectorSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`pause_ms`: between two looks."""

    connect: str
    session_timeout_ms: int
    pause_ms: int
    request_timeout_ms: int = 5_000


async def run(environment: Environment, spec: InspectorSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("inspector") as scope:
        scope.spawn(_look_again_and_again(environment, spec, registered, session), "looks")
        await closing.wait()
        scope.cancel("asked to leave")
    await session.close()
    await registered.close()


async def _look_again_and_again(
    environment: Environment, spec: InspectorSpec, registered: RegisteredBrokers, session: ZooKeeper
) -> None:
    while True:
        began = _emit(environment, spec, Kind.INVOKED)
        try:
            children, data = await _znodes(PipelinedClient(session))
            metadata = {
                str(broker): await _metadata(environment, spec, address)
                for broker, address in (await registered.addresses()).items()
            }
        except (NoBroker, NetworkError, RefusedByBroker) as error:
            _emit(environment, spec, Kind.FAILED_OP, of=began, error=str(error))
        except SessionExpired as error:
            _emit(environment, spec, Kind.FAILED_OP, of=began, error=str(error))
            session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
        else:
            _emit(environment, spec, Kind.OK, of=began, children=children, data=data, metadata=metadata)
        await environment.tasks.sleep(spec.pause_ms * 1000)


async def _znodes(client: PipelinedClient) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """The children of the roots and of each topic's partitions, and the data of topics, states and topics' settings.
    Raises SessionExpired."""
    children = await _children(client, ROOTS)
    topics = [topic_path(each) for each in children.get(BROKER_TOPICS, ())]
    below = await _children(client, [f"{each}/partitions" for each in topics])
    states = [f"{folder}/{number}/state" for folder, numbers in below.items() for number in numbers]
    settings = [topic_config_path(each) for each in children.get(TOPIC_CONFIGS, ())]
    paths = [*topics, *states, *settings]
    answers = await client.ask_all([_get(each) for each in paths])
    data = {path: node.data.decode() for path, node in _there(paths, answers)}
    return {**children, **below}, data


async def _children(client: PipelinedClient, paths: Sequence[str]) -> dict[str, tuple[str, ...]]:
    answers = await client.ask_all([_list(each) for each in paths])
    return {path: found.names for path, found in _there(paths, answers)}


def _there(paths: Sequence[str], answers: Sequence[Answer[T]]) -> list[tuple[str, T]]:
    """What is there. Raises other errors than NoNode."""
    return [
        (path, answer.reply.value)
        for path, answer in zip(paths, answers, strict=True)
        if not isinstance(answer.error, NoNode)
    ]


def _get(path: str) -> Request[Node]:
    def ask(session: ZooKeeper) -> Future[Reply[Node]]:
        return session.get(path)

    return ask


def _list(path: str) -> Request[Children]:
    def ask(session: ZooKeeper) -> Future[Reply[Children]]:
        return session.children(path)

    return ask


async def _metadata(environment: Environment, spec: InspectorSpec, address: Address) -> dict[str, object]:
    """What one broker tells of the cluster. Raises NoBroker, NetworkErrors and RefusedByBroker."""
    cluster = ClusterClient(
        environment.tasks, environment.network, [address], spec.actor, request_timeout_ms=spec.request_timeout_ms
    )
    try:
        topics = await cluster.refresh(None)
    finally:
        cluster.close()
    return {
        "brokers": sorted(cluster.nodes),
        "topics": {
            each.name: {
                str(one.partition_index): [one.leader_id, list(one.replica_nodes), list(one.isr_nodes)]
                for one in each.partitions
            }
            for each in topics
        },
    }


def _emit(environment: Environment, spec: InspectorSpec, kind: Kind, **detail: object) -> int:
    """Record an event. Returns its number."""
    return environment.recorder.emit(Layer.OP, kind, member=spec.actor, detail={"op": LOOK, **detail})[1]


ROLE = Role("inspector", InspectorSpec, run)
