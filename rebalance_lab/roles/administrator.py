"""The role of a client that has topics created, and leaves it to the brokers where their replicas go.

Each topic is a pair of events: INVOKED (topic; detail: op `create-topic`, partitions, replication), then OK, or
FAILED_OP (detail: error, the name of Kafka's error code, and message). A request that no broker has answered ends in
INFO, and is sent again; the topic may exist then.
"""

from __future__ import annotations

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.history.creations import CREATE_TOPIC
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreateTopicsRequest
from rebalance_lab.world.network import NetworkError
from rebalance_lab.world.ports import Environment

RETRY_US = 100_000

#: There is no controller now, or another one; the request was not carried out.
_AGAIN = frozenset({ErrorCode.NOT_CONTROLLER})


class AdministratorSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`topics`: name, partitions and replication factor of each, in the order in which it asks for them."""

    connect: str
    session_timeout_ms: int
    topics: tuple[tuple[str, int, int], ...]
    request_timeout_ms: int = 30_000


async def run(environment: Environment, spec: AdministratorSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("administrator") as scope:
        scope.spawn(_create_all(environment, spec, registered), "topics")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


async def _create_all(environment: Environment, spec: AdministratorSpec, registered: RegisteredBrokers) -> None:
    for topic in spec.topics:
        while not await _created(environment, spec, registered, *topic):
            await environment.tasks.sleep(RETRY_US)


async def _created(
    environment: Environment,
    spec: AdministratorSpec,
    registered: RegisteredBrokers,
    topic: str,
    partitions: int,
    replication: int,
) -> bool:
    """Whether the brokers have answered."""

    def emit(kind: Kind, **detail: object) -> int:
        detail = {"op": CREATE_TOPIC, "partitions": partitions, "replication": replication, **detail}
        return environment.recorder.emit(Layer.OP, kind, member=spec.actor, topic=topic, detail=detail)[1]

    cluster = ClusterClient(
        environment.tasks,
        environment.network,
        list((await registered.addresses()).values()),
        spec.actor,
        request_timeout_ms=spec.request_timeout_ms,
    )
    wanted = CreatableTopic(
        name=topic, num_partitions=partitions, replication_factor=replication, assignments=(), configs=()
    )
    began = emit(Kind.INVOKED)
    try:
        request = CreateTopicsRequest(topics=(wanted,), timeout_ms=spec.request_timeout_ms)
        (answer,) = (await cluster.ask_controller(request)).topics
    except (NoBroker, NetworkError, RefusedByBroker) as error:
        emit(Kind.INFO, of=began, error=str(error))
        return False
    finally:
        cluster.close()
    code = ErrorCode(answer.error_code)
    if code is ErrorCode.NONE:
        emit(Kind.OK, of=began)
        return True
    emit(Kind.FAILED_OP, of=began, error=code.name, message=answer.error_message)
    return code not in _AGAIN


ROLE = Role("administrator", AdministratorSpec, run)
