"""Real Kafka made ready: its jars, and archives of its classes, by which its JVMs start sooner."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rebalance_lab.java import make_archive
from rebalance_lab.world.kafka.broker import START_TIMEOUT_S, KafkaBroker
from rebalance_lab.world.kafka.consumer import ConsoleConsumer
from rebalance_lab.world.kafka.jars import (
    NODES,
    KafkaUnavailable,
    Role,
    archive_of,
    cache_folder,
    class_path,
    program,
)
from rebalance_lab.world.kafka.jvm import JavaProgram
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

#: The JVM that is recorded writes its archive when it ends. Seconds on two idle cores.
_ENDS_S = 60.0

_POLL_S = 0.05

#: A consumer has loaded its classes when it has its partitions, of which there are none here.
_REBALANCED = "end rebalancing consumer"


#: Archives that this process could not make. It does not try again before each trial.
_GIVEN_UP: set[Path] = set()


def prepare(roles: Iterable[Role] = NODES) -> None:
    """Fetch the jars of roles that are not kept yet, and make archives of their classes. This takes a minute once, so
    do not call it while a session must be kept alive. A role whose archive cannot be made starts without.

    Raises KafkaUnavailable: no Maven, or it could not fetch the jars.
    """
    for role in roles:
        class_path(role)
        path = archive_of(role)
        if role in _USES and path is not None and not path.exists() and path not in _GIVEN_UP:
            try:
                _make_archive(role, path)
            except (EmbeddedServerError, OSError):
                _GIVEN_UP.add(path)


def _make_archive(role: Role, path: Path) -> None:
    with _alone():
        if not path.exists():
            use = partial(_run, _USES[role])
            make_archive(program(role), path, use, use)


@contextmanager
def _alone() -> Iterator[None]:
    """One process makes archives at a time; the others wait for it, and find them."""
    lock = os.open(cache_folder() / "archives.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _run(use: Callable[[str, Path], JavaProgram], folder: Path) -> None:
    """Run a node of real Kafka on a ZooKeeper of its own until it has started, and end it."""
    with EmbeddedZooKeeper.start(folder / "zookeeper") as server:
        node = use(server.connect_string, folder / "node")
        try:
            node.terminate()
            node.wait(_ENDS_S)
        finally:
            node.kill()


def _broker(role: Role, connect: str, folder: Path) -> JavaProgram:
    broker = KafkaBroker(1, connect, folder, role=role, settings={"controlled.shutdown.enable": "false"})
    broker.wait_until_started()
    return broker


def _consumer(connect: str, folder: Path) -> JavaProgram:
    """It shares most of its classes with the broker of 0.8.2.2. Raises KafkaUnavailable."""
    properties = {"zookeeper.connect": connect, "group.id": "archive"}
    consumer = ConsoleConsumer(".*", properties, folder=folder, name="consumer", loggers={})
    give_up = time.monotonic() + START_TIMEOUT_S
    while _REBALANCED not in consumer.logged():
        if consumer.ended or time.monotonic() > give_up:
            consumer.kill()
            raise KafkaUnavailable(f"{consumer.describe()} does not rebalance{consumer.log_tail()}")
        time.sleep(_POLL_S)
    return consumer


#: What loads the classes of a role, and returns once it has started.
_USES: dict[Role, Callable[[str, Path], JavaProgram]] = {
    Role.CONSUMER: _consumer,
    **{role: partial(_broker, role) for role in (Role.BROKER, Role.BROKER_3_0, Role.BROKER_1_1)},
}
