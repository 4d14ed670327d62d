"""Three kinds of members for `group_settles`: ours, Kafka 0.8.2.2's, pykafka's.

Each kind starts its members at once in one process, and one more in a process of its own, to be killed.
Before that both processes are up, and have had a member or two in another group: what an interpreter or a
compiler does at its first time is not what is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway

from rebalance_lab.hosts.spec import Leave, MemberSpec
from rebalance_lab.trials.live_processes import HostProcess
from rebalance_lab.world.kafka.jars import Role, class_path
from rebalance_lab.world.live.java import java_command
from rebalance_lab.world.live.processes import die_with_parent

TOPIC = "t1"

#: A JVM for up to 64 members: each has half a dozen threads.
_HEAP_MB = 768

WARM_UPS = 5


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group lives and how it is set up. `settled`: wait until another group owns everything."""

    zookeeper: str
    broker: str
    group: str
    folder: Path
    settings: Mapping[str, str]
    settled: Callable[[str], None]

    @property
    def warm_up(self) -> str:
        """The group of its processes' first members."""
        return f"{self.group}-warm-up"


class Kind(Protocol):
    """The members of one group. `ready` starts their processes; `start` returns when all members
    have been told; `end` kills what still runs."""

    def ready(self) -> None: ...
    def start(self, count: int) -> None: ...
    def leave(self) -> None: ...
    def join(self) -> None: ...
    def kill(self) -> None: ...
    def end(self) -> None: ...


class Ours:
    """Members as shipped; all but the last in one process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._hosts: list[HostProcess] = []
        self._started = 0
        self._first = 0

    def _spec(self, group: str | None = None) -> MemberSpec:
        self._started += 1
        name, place = f"m{self._started}", self._place
        return MemberSpec(
            actor=name,
            host=f"host-{self._started:03}",
            seed=1,
            rules="shipped",
            assignor=None,
            properties={**place.settings, "group.id": group or place.group, "zookeeper.connect": place.zookeeper},
            streams={TOPIC: 1},
            plant=None,
            events=str(place.folder / f"{place.group}-{name}.jsonl"),
            work_period_ms=1000,
            operations="counts",
        )

    def ready(self) -> None:
        """One member of another group in each process; it stays, and has nothing to do."""
        for name in ("many", "one"):
            spec = self._spec(self._place.warm_up)
            self._hosts.append(HostProcess(f"{self._place.group}-{name}", [spec], self._place.folder))
        self._place.settled(self._place.warm_up)

    def start(self, count: int) -> None:
        many, one = self._hosts
        self._first = self._started + 1
        for _ in range(count - 1):
            many.start(self._spec())
        one.start(self._spec())

    def leave(self) -> None:
        self._hosts[0].tell(Leave(f"m{self._first}"))

    def join(self) -> None:
        self._hosts[0].start(self._spec())

    def kill(self) -> None:
        self._hosts[1].end()

    def end(self) -> None:
        for host in self._hosts:
            host.end()


class RealKafka:
    """`ZookeeperConsumerConnector`s of 0.8.2.2, all but the last in one JVM, called by py4j: each has
    its connection before all create their streams at once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._jvms = [_Jvm(place, "many"), _Jvm(place, "one")]
        self._connectors: list[Any] = []

    def _connector(self, jvm: _Jvm, group: str | None = None) -> Any:
        place = self._place
        settings = {
            **place.settings,
            "group.id": group or place.group,
            "zookeeper.connect": place.zookeeper,
            "auto.commit.enable": "false",  # ours commit nothing
            "fetch.wait.max.ms": "1000",
        }
        return jvm.connector(settings)

    def ready(self) -> None:
        """In each JVM two members form a group, several times: the compiler has had its turn."""
        for jvm in self._jvms:
            for _ in range(WARM_UPS):
                pair = [self._connector(jvm, self._place.warm_up) for _ in range(2)]
                _at_once([jvm.creating(each) for each in pair])
                for each in pair:
                    each.shutdown()

    def start(self, count: int) -> None:
        many, one = self._jvms
        self._connectors = [self._connector(many) for _ in range(count - 1)]
        last = one.creating(self._connector(one))
        _at_once([*(many.creating(each) for each in self._connectors), last])

    def leave(self) -> None:
        self._connectors.pop(0).shutdown()

    def join(self) -> None:
        _at_once([self._jvms[0].creating(self._connector(self._jvms[0]))])

    def kill(self) -> None:
        self._jvms[1].end()

    def end(self) -> None:
        for jvm in self._jvms:
            jvm.end()


def _at_once(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Jvm:
    """A JVM with 0.8.2.2's classes, called by py4j."""

    def __init__(self, place: Place, name: str) -> None:
        bridge = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
        logging = place.folder / "quiet.log4j"
        logging.write_text("log4j.rootLogger=OFF\n")
        jars = os.pathsep.join((str(bridge), class_path(Role.CONSUMER)))
        flags = (f"-Xmx{_HEAP_MB}m", "-XX:+UseSerialGC", f"-Dlog4j.configuration={logging.absolute().as_uri()}")
        with (place.folder / f"{place.group}-{name}.out").open("wb") as errors:
            self._popen = subprocess.Popen(
                [java_command(), *flags, "-cp", jars, "py4j.GatewayServer", "0"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=die_with_parent(),  # noqa: PLW1509
                process_group=0,
            )
        assert self._popen.stdout is not None
        port = int(self._popen.stdout.readline())
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))

    def connector(self, settings: Mapping[str, str]) -> Any:
        """A connector, connected and without streams."""
        jvm = self._gateway.jvm
        properties = jvm.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, value)
        return jvm.kafka.javaapi.consumer.ZookeeperConsumerConnector(jvm.kafka.consumer.ConsumerConfig(properties))

    def creating(self, connector: Any) -> threading.Thread:
        """A thread that makes a connector's streams: done when its first rebalance is."""
        return threading.Thread(target=connector.createMessageStreams, args=({TOPIC: 1},), daemon=True)

    def end(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        self._gateway.close()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()


class PyKafka:
    """pykafka's BalancedConsumers, with the Python of an environment of its own."""

    def __init__(self, place: Place, python: Path) -> None:
        self._place = place
        self._python = python
        self._hosts: list[subprocess.Popen[bytes]] = []

    def _host(self) -> subprocess.Popen[bytes]:
        place = self._place
        script = Path(__file__).with_name("group_settles_pykafka.py")
        own = (place.settings["rebalance.backoff.ms"], place.settings["rebalance.max.retries"])
        with (place.folder / f"{place.group}.err").open("ab") as errors:
            host = subprocess.Popen(
                [self._python, script, place.zookeeper, place.broker, place.group, TOPIC, *own],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=die_with_parent(),  # noqa: PLW1509
                process_group=0,
            )
        self._hosts.append(host)
        return host

    def ready(self) -> None:
        for host in (self._host(), self._host()):
            _tell(host, "start 0")
            _answered(host)

    def start(self, count: int) -> None:
        many, one = self._hosts
        _tell(many, f"start {count - 1}")
        _tell(one, "start 1")
        _answered(many)
        _answered(one)

    def leave(self) -> None:
        _tell(self._hosts[0], "leave")
        _answered(self._hosts[0])

    def join(self) -> None:
        _tell(self._hosts[0], "join")
        _answered(self._hosts[0])

    def kill(self) -> None:
        self._hosts[1].kill()

    def end(self) -> None:
        for host in self._hosts:
            if host.poll() is None:
                host.kill()
            host.wait()
            for pipe in (host.stdin, host.stdout):
                if pipe is not None:
                    pipe.close()


def _tell(host: subprocess.Popen[bytes], command: str) -> None:
    assert host.stdin is not None
    host.stdin.write(f"{command}\n".encode())
    host.stdin.flush()


def _answered(host: subprocess.Popen[bytes]) -> None:
    assert host.stdout is not None
    if host.stdout.readline().strip() != b"done":
        sys.exit("pykafka's members ended; their .err file says why")
