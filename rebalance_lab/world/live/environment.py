"""What an actor of a live trial is given."""

from __future__ import annotations

import os
import socket
import time
from functools import partial
from pathlib import Path

from rebalance_lab.history.recorder import Recorder, Sink
from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.network import ADDRESS_VARIABLE, LiveNetwork
from rebalance_lab.world.live.reserved_port import HOST
from rebalance_lab.world.live.security import NO_SECURITY, Security
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.live.storage import LiveStorage
from rebalance_lab.world.net.listening import record_listening
from rebalance_lab.world.ports import Environment
from rebalance_lab.world.zk.recording import ALL, MemberOf, RecordingFactory


class LiveClock:
    """CLOCK_MONOTONIC and the wall clock of this host (the port `world.ports.Clock`)."""

    def __init__(self, kernel: Kernel) -> None:
        self.now_us = kernel.now_us

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def live_factory(
    actor: str, live: LiveKernel, seed: int | str, security: Security = NO_SECURITY
) -> LiveZooKeeperFactory:
    """Where `actor` opens its sessions. Those that are still open when the kernel closes are
    dropped without a word, as when a process ends."""
    factory = LiveZooKeeperFactory(
        live.kernel, live.loop, RandomStream(seed, actor, "zookeeper session"), security=security
    )
    live.on_close(factory.close)
    return factory


def live_environment(
    actor: str,
    live: LiveKernel,
    sink: Sink,
    seed: int | str,
    *,
    host: str | None = None,
    member_of: MemberOf | None = None,
    operations: str = ALL,
    factory: LiveZooKeeperFactory | None = None,
    next_n: int = 0,
    storage: Path | None = None,
) -> Environment:
    """An environment on a live kernel, its sessions recorded to `sink`.

    `host`: the name that goes into consumer ids; left out, the machine's. `operations`: `all` or
    `counts` (`world.zk.recording`). `factory`: from `live_factory`, if the caller needs it.
    `storage`: the folder of the actor's files, made when it is first needed; None: it can keep none.
    It listens on loopback, or where ADDRESS_VARIABLE says (`world.live.network`).
    """
    kernel = live.kernel
    recorder = Recorder(actor, kernel, sink, next_n=next_n)
    if factory is None:
        factory = live_factory(actor, live, seed)
    network = LiveNetwork(
        kernel, live.loop, partial(record_listening, recorder), host=os.environ.get(ADDRESS_VARIABLE, HOST)
    )
    live.on_close(network.close)
    files = LiveStorage(kernel, live.loop, storage)
    live.on_close(files.close)
    return Environment(
        actor=actor,
        host=socket.gethostname() if host is None else host,
        tasks=kernel,
        clock=LiveClock(kernel),
        zookeeper=RecordingFactory(factory, recorder, kernel, member_of, operations=operations),
        recorder=recorder,
        network=network,
        storage=files,
        seed=seed,
    )
