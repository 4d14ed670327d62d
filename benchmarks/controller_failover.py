"""How long a controller takes to take over: the lab's beside those of Kafka 3.9.1 and 0.8.2.2, on one ZooKeeper.

Run: python -m benchmarks.controller_failover --partitions 10000 [--runs 5] [--releases 3.9.1,0.8.2.2]
         [--forms 1.1,0.8.2] [--json]

`--forms`: the lab's controller also in older forms (`controller.forms`).

Each contender has the same cluster below a chroot of its own: topics of 50 partitions with two replicas, both in sync,
led by broker 1. Broker 1 is real, and the only one that may be the controller. Broker 2 is a registration, behind which
this command answers what a controller sends; so one clock measures all contenders at the same place.

A run begins when ZooKeeper has deleted `/controller`, and ends when broker 2 has received the last LeaderAndIsr request
of the new controller epoch. The contenders take turns, and one run of each before the others is not counted. What each
does in that time: docs/benchmarks.md.

When a failover is over, broker 1 is sent its LeaderAndIsr requests again, by this command, and timed until it has
answered them. Its controller has sent it the same ones, in the failover, beside its other work. The broker knows all of
these leaderships both times, because no leader changes. Where a process may open too few files for that, this is not
measured: broker 1 takes its roles after what is timed, and ends when it may open no more.

With --json: `ours` and `theirs` (of 3.9.1; null without it) are medians in seconds, `ratio` is the median of
ours / theirs over the runs; `answers`: the seconds of broker 1, of each run, or none. Exit code 1 if the ratio is above
a sixth, and 2 if a contender did not do what was to be timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from msgspec.structs import replace

from controller.forms import ControllerForm
from rebalance_lab.cli.cluster import BrokerProcess
from rebalance_lab.testing.ensemble import wait_until
from rebalance_lab.wire.cluster import (
    LeaderIsrAndControllerEpoch,
    assignment_payload,
    read_registration,
    registration_payload,
    state_payload,
)
from rebalance_lab.wire.kafka.apis import ApiKey
from rebalance_lab.wire.kafka.frames import (
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_header,
)
from rebalance_lab.wire.kafka.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from rebalance_lab.wire.kafka.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from rebalance_lab.wire.paths import (
    BROKER_IDS,
    BROKER_TOPICS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    broker_path,
    partition_state_path,
    topic_path,
)
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.jars import Role
from rebalance_lab.world.live.reserved_port import ReservedPort
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.process.os_process import OsProcess

OURS, NEW, OLD = "the lab", "3.9.1", "0.8.2.2"
RELEASES = (NEW, OLD)
OLDER = (ControllerForm.V1_1, ControllerForm.V0_8_2)

PARTITIONS_PER_TOPIC = 50
REAL, STUB = 1, 2
ALLOWED = 1 / 6

#: A broker that opens 100,000 logs, or reads 100,000 znodes one after another.
LIMIT_S = 900

#: A controller sends nothing more of a failover after a pause of this length; the next run begins then.
QUIET_S = 1.0

SESSION_TIMEOUT_MS = 60_000
#: The stub never fetches, so it would leave every ISR.
SETTINGS = {"replica.lag.time.max.ms": "2000000000", "auto.leader.rebalance.enable": "false"}

#: Of a broker of Kafka, and more than it needs.
HEAP_MB = 2048

#: The JVMs may compile as they do in production.
JAVA_OPTIONS = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=4"}


class NotMeasured(Exception):
    """A contender did not do what was to be timed."""


# -- broker 2 -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Received:
    """A request of a controller. `frame`: as it was sent, without its size. `partitions`: those of a LeaderAndIsr or
    UpdateMetadata request."""

    at_s: float
    frame: bytes
    kind: type
    epoch: int
    partitions: int


class Stub:
    """Broker 2 of one contender: it takes what a controller sends, says that all is well, and keeps when each request
    was there as a whole. Requests of followers are never answered."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.frames: list[tuple[float, bytes]] = []
        self.port = asyncio.run_coroutine_threadsafe(self._listen(), loop).result(LIMIT_S)

    async def _listen(self) -> int:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 26)
        return int(server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
                self.frames.append((time.perf_counter(), frame))
                answer = _answer(frame)
                if answer is not None:
                    writer.write(len(answer).to_bytes(4, "big") + answer)

    def received(self, since_s: float) -> list[Received]:
        found = []
        for at_s, frame in [each for each in self.frames if each[0] >= since_s]:
            header = read_header(frame)
            if header.key in _ANSWERS:
                request: Any = decode_request(frame, header)
                found.append(Received(at_s, frame, type(request), request.controller_epoch, _partitions(request)))
        return found


_ANSWERS: dict[ApiKey, Callable[[], Any]] = {
    ApiKey.LEADER_AND_ISR: lambda: LeaderAndIsrResponse(error_code=0),
    ApiKey.UPDATE_METADATA: lambda: UpdateMetadataResponse(error_code=0),
    ApiKey.STOP_REPLICA: lambda: StopReplicaResponse(error_code=0, partition_errors=()),
}


def _answer(frame: bytes) -> bytes | None:
    header = read_header(frame)
    make = _ANSWERS.get(header.key)
    return None if make is None else encode_response(make(), header.version, correlation_id=header.correlation_id)


def _partitions(request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest) -> int:
    if isinstance(request, StopReplicaRequest):
        return 0
    grouped = sum(len(each.partition_states) for each in request.topic_states)
    return grouped + len(request.ungrouped_partition_states)


# -- contenders -----------------------------------------------------------------------------------


@dataclass
class Contender:
    """`zookeeper`: a client below its chroot. `seconds`: of each run that counts; `answers`: how long broker 1 took to
    answer its LeaderAndIsr requests, in seconds."""

    name: str
    broker: OsProcess
    stub: Stub
    zookeeper: KazooClient
    partitions: int
    seconds: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)
    epoch: int = 0

    def failover(self) -> tuple[float, list[bytes]]:
        """Delete `/controller`. Seconds until the last LeaderAndIsr request of the next controller epoch; all of these
        requests, as they were sent to broker 2."""
        self.zookeeper.delete(CONTROLLER)
        began_s = time.perf_counter()
        sent = self.until_over(began_s)
        self.epoch = sent[-1].epoch
        orders = [each for each in sent if each.kind is LeaderAndIsrRequest]
        return max(each.at_s for each in orders) - began_s, [each.frame for each in orders]

    def answered_s(self, orders: list[bytes]) -> float:
        """Seconds in which broker 1 answers these LeaderAndIsr requests, sent one after another."""
        data, stat = self.zookeeper.get(broker_path(REAL))
        address = read_registration(REAL, data).address
        if address is None:
            raise NotMeasured(f"broker {REAL} of {self.name} has no plaintext endpoint")
        with socket.create_connection(address, LIMIT_S) as connection:
            return sum(_exchange(connection, each, stat.czxid, of=self.name) for each in orders)

    def until_over(self, since_s: float) -> list[Received]:
        """Wait for a failover to end. What was sent in it."""
        found: list[Received] = []

        def over() -> bool:
            if self.broker.ended:
                raise NotMeasured(f"the broker of {self.name} has ended: {self.broker.tail()}")
            if self.stub.frames and time.perf_counter() - self.stub.frames[-1][0] < QUIET_S:
                return False
            found[:] = [each for each in self.stub.received(since_s) if each.epoch > self.epoch]
            return self._is_whole(found)

        wait_until(over, f"broker 2 of {self.name} to receive {self.partitions} partitions", limit_s=LIMIT_S)
        return found

    def _is_whole(self, sent: list[Received]) -> bool:
        """Whether the leadership of all partitions was sent, and then their metadata."""
        led = [place for place, each in enumerate(sent) if each.kind is LeaderAndIsrRequest]
        if sum(sent[each].partitions for each in led) < self.partitions:
            return False
        after = sent[led[-1] :]
        return any(each.kind is UpdateMetadataRequest and each.partitions >= self.partitions for each in after)


def _exchange(connection: socket.socket, order: bytes, broker_epoch: int, *, of: str) -> float:
    """Send a LeaderAndIsr request to the broker of this epoch, of this contender. Seconds until its answer is there as
    a whole."""
    header = read_header(order)
    request: Any = replace(decode_request(order, header), broker_epoch=broker_epoch)
    frame = encode_request(request, header.version, correlation_id=header.correlation_id, client_id="benchmark")
    began_s = time.perf_counter()
    connection.sendall(len(frame).to_bytes(4, "big") + frame)
    with connection.makefile("rb") as answers:
        answer = answers.read(int.from_bytes(answers.read(4), "big"))
    seconds = time.perf_counter() - began_s
    _, response = decode_response(answer, header.key, header.version)
    assert isinstance(response, LeaderAndIsrResponse)
    if response.error_code:
        raise NotMeasured(
            f"broker {REAL} of {of} refuses a LeaderAndIsr request with {_partitions(request)} partitions: error "
            f"{response.error_code}"
        )
    return seconds


def fill(zookeeper: KazooClient, partitions: int, stub_port: int) -> None:
    """The cluster that a controller is to take over."""
    for path in (BROKER_IDS, BROKER_TOPICS):
        zookeeper.ensure_path(path)
    zookeeper.create(CONTROLLER_EPOCH, b"1")
    state = LeaderIsrAndControllerEpoch(controller_epoch=1, leader=REAL, leader_epoch=0, isr=(REAL, STUB))
    replicas = dict.fromkeys(range(PARTITIONS_PER_TOPIC), (REAL, STUB))
    for number in range(partitions // PARTITIONS_PER_TOPIC):
        topic = f"topic-{number}"
        together = zookeeper.transaction()
        together.create(topic_path(topic), assignment_payload(replicas, number.to_bytes(16, "big")))
        together.create(f"{topic_path(topic)}/partitions", b"")
        for partition in range(PARTITIONS_PER_TOPIC):
            path = partition_state_path(topic, partition)
            together.create(path.rpartition("/")[0], b"")
            together.create(path, state_payload(state))
        if any(isinstance(each, Exception) for each in together.commit()):
            raise NotMeasured(f"{topic} could not be created")
    registration = registration_payload("127.0.0.1", stub_port, timestamp_ms=time.time_ns() // 1_000_000)
    zookeeper.create(broker_path(STUB), registration, ephemeral=True)


def start_ours(form: ControllerForm, stack: ExitStack, connect: str, folder: Path) -> OsProcess:
    folder.mkdir()
    settings = [f"--set={name}={value}" for name, value in {**SETTINGS, "lab.controller.form": form}.items()]
    broker = BrokerProcess(REAL, connect, folder, f"--session-timeout-ms={SESSION_TIMEOUT_MS}", *settings)
    stack.callback(broker.kill)
    broker.launch()
    return broker


def start_theirs(role: Role, stack: ExitStack, connect: str, folder: Path) -> OsProcess:
    port = stack.enter_context(closing(ReservedPort())).number
    broker = KafkaBroker(
        REAL,
        connect,
        folder,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        port=port,
        settings=SETTINGS,
        role=role,
        heap_mb=HEAP_MB,
    )
    stack.callback(broker.kill)
    return broker


STARTS: dict[str, Callable[[ExitStack, str, Path], OsProcess]] = {
    OURS: partial(start_ours, ControllerForm.V2_1),
    **{f"{OURS} as {form}": partial(start_ours, form) for form in OLDER},
    NEW: partial(start_theirs, Role.BROKER),
    OLD: partial(start_theirs, Role.CONSUMER),
}


@contextmanager
def contenders(names: list[str], partitions: int) -> Iterator[list[Contender]]:
    """Each with its cluster, of which it is the controller."""
    os.environ.update(JAVA_OPTIONS)
    with tempfile.TemporaryDirectory(prefix="controller-failover-") as scratch, ExitStack() as stack:
        folder = Path(scratch)
        zookeeper = stack.enter_context(EmbeddedZooKeeper.start(folder / "zookeeper", 2_000, heap_mb=1024))
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        stack.callback(loop.call_soon_threadsafe, loop.stop)
        found = []
        for number, name in enumerate(names):
            connect = f"{zookeeper.connect_string}/contender-{number}"
            root = KazooClient(zookeeper.connect_string, timeout=SESSION_TIMEOUT_MS / 1000)
            root.start()
            root.ensure_path(f"/contender-{number}")
            root.stop()
            client = KazooClient(connect, timeout=SESSION_TIMEOUT_MS / 1000)
            client.start()
            stack.callback(client.stop)
            stub = Stub(loop)
            fill(client, partitions, stub.port)
            broker = STARTS[name](stack, connect, folder / f"contender-{number}")
            contender = Contender(name, broker, stub, client, partitions, epoch=1)
            print(f"{name} takes {partitions} partitions for the first time", file=sys.stderr)
            contender.epoch = contender.until_over(0.0)[-1].epoch
            found.append(contender)
        yield found


# -- results --------------------------------------------------------------------------------------


def measure(names: list[str], partitions: int, runs: int) -> list[Contender]:
    with contenders(names, partitions) as found:
        for run in range(runs + 1):
            print(f"run {run} of {runs}" if run else "warming up", file=sys.stderr)
            for each in found if run % 2 else reversed(found):
                seconds, orders = each.failover()
                answers_s = [each.answered_s(orders)] if may_open(partitions) else []
                if run:
                    each.seconds.append(seconds)
                    each.answers += answers_s
    return found


def may_open(partitions: int) -> bool:
    """Whether this host lets a process open a file for each partition, which broker 1 does, and as many others."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit == resource.RLIM_INFINITY or limit >= 2 * partitions


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median over the runs."""
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def report(found: list[Contender]) -> dict[str, Any]:
    seconds = {each.name: each.seconds for each in found}
    ours, theirs = seconds[OURS], seconds.get(NEW)
    return {
        "partitions": found[0].partitions,
        "ours": statistics.median(ours),
        "theirs": None if theirs is None else statistics.median(theirs),
        "ratio": None if theirs is None else ratio(ours, theirs),
        "seconds": seconds,
        "answers": {each.name: each.answers for each in found},
    }


def show(found: list[Contender]) -> None:
    print("| partitions | controller | seconds (least to most) | the lab / it | its broker answers in |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for each in found:
        by = "" if each.name == OURS else f"{ratio(found[0].seconds, each.seconds):.2f}"
        print(f"| {each.partitions:,} | {each.name} | {_spread(each.seconds)} | {by} | {_spread(each.answers)} |")


def _spread(seconds: list[float]) -> str:
    """An empty text if nothing was measured."""
    return f"**{statistics.median(seconds):.3f}** ({min(seconds):.3f} to {max(seconds):.3f})" if seconds else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--releases", default=NEW, help="of Kafka, to compare with; none: the lab alone")
    parser.add_argument("--forms", default="", help="older forms of the lab's controller")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    wanted = [each for each in options.releases.split(",") if each not in ("", "none")]
    forms = [each for each in options.forms.split(",") if each]
    if options.runs < 1 or options.partitions < PARTITIONS_PER_TOPIC or not set(wanted) <= set(RELEASES):
        parser.error(f"at least one run and {PARTITIONS_PER_TOPIC} partitions; releases are {', '.join(RELEASES)}")
    if not set(forms) <= set(OLDER):
        parser.error(f"older forms are {', '.join(OLDER)}")
    names = [OURS, *(f"{OURS} as {each}" for each in forms), *wanted]
    try:
        found = measure(names, options.partitions // PARTITIONS_PER_TOPIC * PARTITIONS_PER_TOPIC, options.runs)
    except NotMeasured as error:
        print(f"controller_failover: {error}", file=sys.stderr)
        return 2
    results = report(found)
    if options.json:
        print(json.dumps(results))
    else:
        show(found)
    return int(results["ratio"] is not None and results["ratio"] > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())
