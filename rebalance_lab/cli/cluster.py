"""`cluster`: ZooKeeper and brokers of the lab, in the foreground."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rebalance_lab.cli.broker import BrokerSetOption, broker_configs
from rebalance_lab.cli.brokers import CLIENT_ID, Unrecorded, with_cluster
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.cli.zookeeper import used_alone, watch
from rebalance_lab.client.cluster import ClusterClient
from rebalance_lab.history.scratch import temporary_folder
from rebalance_lab.kernel import Future
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.paths import broker_path
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.ports import Environment, Reply, Stat, ZooKeeper
from rebalance_lab.world.process.os_process import OsProcess
from rebalance_lab.zkclient.pipelined import PipelinedClient

#: A broker starts in about a second. Recovery of large logs takes longer.
START_TIMEOUT_S = 60.0
_POLL_S = 0.02

#: Of the brokers that this command starts: the default of the command `broker`.
LAST_SESSION_TIMEOUT_MS = 18_000

LAST_PORT = 65535

#: A clean shutdown writes checkpoints and closes all logs.
_STOP_TIMEOUT_S = 30.0


#: How often a broker asks the controller to move what it leads before it closes. Once: the last brokers of a cluster
#: that ends have nobody to lead for them, and would wait for nothing.
_ASKS = "controlled.shutdown.max.retries"


class _Ready(msgspec.Struct):
    """The line that a broker prints once it is registered."""

    bootstrap: str


class BrokerProcess(OsProcess):
    """A broker of the lab as a process: the command `broker`."""

    stop_timeout_s = _STOP_TIMEOUT_S

    def __init__(self, number: int, connect: str, folder: Path, *options: str) -> None:
        """`options`: further ones of the command."""
        super().__init__(f"broker {number}", folder / f"broker-{number}.log")
        data = folder / f"broker-{number}"
        self._command = [sys.executable, "-m", "rebalance_lab", "broker", "--json"]
        self._command += ["--zookeeper", connect, "--id", str(number), "--data", str(data), *options]

    def launch(self) -> None:
        """Start it and return at once; see `bootstrap`."""
        self._spawn(self._command, self.log_file)

    def bootstrap(self) -> str | None:
        """`host:port`; None until it serves. Raises Failure if it has ended instead."""
        has_ended = self.ended
        for line in self.log_file.read_bytes().splitlines():
            if line.startswith(b"{"):
                return msgspec.json.decode(line, type=_Ready).bootstrap
        if has_ended:
            raise Failure(f"{self.name} ended before it served: {self.tail()}")
        return None


def cluster(
    *,
    brokers: Annotated[int, typer.Option("--brokers", help="Number of brokers, with ids from 1.", min=1, max=50)] = 1,
    nodes: Annotated[int, typer.Option("--nodes", help="Number of ZooKeeper servers.", min=1, max=9)] = 1,
    data: Annotated[
        Path | None, typer.Option("--data", help="Keep the data there. Default: delete it at the end.", metavar="DIR")
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Port of the first broker; others count up. 0: any.", min=0, max=LAST_PORT)
    ] = 0,
    set_: BrokerSetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a ZooKeeper and brokers, print their addresses, and keep them running.

    The addresses are a JSON line, printed when all brokers serve; it also names
    the files of what they report (logs). Kafka's producers can use them, and
    consumers without a group. Ctrl-C (SIGINT) and SIGTERM end all. With --data
    the topics are there again at the next start.
    """
    with spoken():
        broker_configs(0, None, set_)
        ports = _ports(port, brokers)
    chosen = set_ or []
    if not any(each.startswith(f"{_ASKS}=") for each in chosen):
        chosen = [*chosen, f"{_ASKS}=1"]
    settings = [word for each in chosen for word in ("--set", each)]
    with spoken(), _folder(data) as folder, ExitStack() as stack:
        zookeeper = (
            stack.enter_context(EmbeddedZooKeeper.start(folder / "zookeeper"))
            if nodes == 1
            else stack.enter_context(EmbeddedEnsemble.start(folder / "zookeeper", nodes))
        )
        servers = [zookeeper] if isinstance(zookeeper, EmbeddedZooKeeper) else list(zookeeper.servers.values())
        connect = zookeeper.connect_string
        if data is not None:
            with LiveKernel() as live:
                environment = live_environment(CLIENT_ID, live, Unrecorded(), os.getpid())
                live.run(_until_free(environment, connect, range(1, brokers + 1)))
        running = [
            _started(stack, BrokerProcess(number, connect, folder, "--port", str(its), *settings))
            for number, its in enumerate(ports, 1)
        ]
        bootstrap = _wait_until_ready(running)
        for each in bootstrap:
            with_cluster(each, partial(until_it_knows, brokers))
        addresses = ",".join(bootstrap)
        print_json({"zookeeper": connect, "bootstrap": addresses, **_processes(servers, running)})
        if not as_json:
            kept = "" if data is not None else ", until it ends"
            print(f"{brokers} broker(s) serve at {addresses}; Ctrl-C ends all.", file=sys.stderr)
            print(f"What the brokers report is in {folder}/broker-*.log{kept}.", file=sys.stderr)
        watch({each.name: each for each in (*servers, *running)}, "processes", data)


def _processes(servers: Sequence[OsProcess], brokers: Sequence[BrokerProcess]) -> dict[str, object]:
    """Of the ready line: the process ids, and the files of what each process reports."""
    numbered = list(enumerate(brokers, 1))
    return {
        "pids": {
            "zookeeper": [each.pid for each in servers],
            "brokers": {str(number): each.pid for number, each in numbered},
        },
        "logs": {
            "zookeeper": [str(each.log_file) for each in servers],
            "brokers": {str(number): str(each.log_file) for number, each in numbered},
        },
    }


def _ports(first: int, brokers: int) -> Sequence[int]:
    """The port of each broker. Raises Failure if there are too few."""
    if not first:
        return [0] * brokers
    last = first + brokers - 1
    if last > LAST_PORT:
        raise Failure(f"--port {first}: {brokers} brokers have ports up to {last}, and there are {LAST_PORT}")
    return range(first, last + 1)


def _started(stack: ExitStack, process: BrokerProcess) -> BrokerProcess:
    stack.callback(process.stop)
    process.launch()
    return process


async def _until_free(environment: Environment, connect: str, ids: Sequence[int]) -> None:
    """Wait until no broker of the last start is registered. After a kill -9 of all, their sessions begin anew with
    ZooKeeper, and last until they time out."""
    session = environment.zookeeper.open(connect, LAST_SESSION_TIMEOUT_MS)
    client = PipelinedClient(session)
    give_up_us = environment.tasks.now_us() + 2 * LAST_SESSION_TIMEOUT_MS * 1000
    left: list[int] = []
    while environment.tasks.now_us() < give_up_us:
        found = await client.ask_all([partial(_registration, each) for each in ids])
        known = left
        left = [each for each, answer in zip(ids, found, strict=True) if answer.reply.value is not None]
        if not left:
            break
        if not known:
            names = ", ".join(map(str, left))
            print(f"rebalance-lab: waiting for the ZooKeeper sessions of killed brokers: {names}", file=sys.stderr)
        await environment.tasks.sleep(round(_POLL_S * 1_000_000))
    await session.close()


def _registration(broker_id: int, session: ZooKeeper) -> Future[Reply[Stat | None]]:
    return session.exists(broker_path(broker_id))


def _wait_until_ready(brokers: Sequence[BrokerProcess]) -> list[str]:
    """Their addresses. Raises Failure if one ends, or takes too long."""
    give_up = time.monotonic() + START_TIMEOUT_S
    while True:
        found = [each.bootstrap() for each in brokers]
        ready = [each for each in found if each is not None]
        if len(ready) == len(brokers):
            return ready
        if time.monotonic() > give_up:
            late = next(each for each, address in zip(brokers, found, strict=True) if address is None)
            raise Failure(f"{late.name} does not serve after {START_TIMEOUT_S:g} s: {late.tail()}")
        time.sleep(_POLL_S)


async def until_it_knows(brokers: int, client: ClusterClient, live: LiveKernel) -> None:
    """Wait until the controller has told a broker of all brokers, and so of the topics that exist. Raises Failure."""
    for _ in range(round(START_TIMEOUT_S / _POLL_S)):
        await client.refresh([])
        if len(client.nodes) == brokers:
            return
        await live.kernel.sleep(round(_POLL_S * 1_000_000))
    known = ", ".join(map(str, client.nodes)) or "none"
    raise Failure(f"of {brokers} brokers a broker knows {known} after {START_TIMEOUT_S:g} s; is there a controller?")


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        with used_alone(data):
            yield data
    else:
        with temporary_folder("rebalance-lab-cluster-") as folder:
            yield folder
