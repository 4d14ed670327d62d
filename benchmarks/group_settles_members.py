"""Three kinds of members for `group_settles`: ours, Kafka 0.8.2.2's, pykafka's.

Each kind starts its members at once in one process, and one more in a process of its own, to be killed.
Before that as many members of these processes form another group and leave it: what an interpreter or a
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

from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.roles.spec import Leave
from rebalance_lab.trials.stages.processes.nodes import LabProcess, on_this_machine
from rebalance_lab.world.kafka.jars import Role, class_path
from rebalance_lab.world.live.java import java_command
from rebalance_lab.world.process.states import die_with_parent
from zkconsumer.config import ConsumerConfig

TOPIC = "t1"

#: A JVM for up to 64 members: each has half a dozen threads.
_HEAP_MB = 768

#: A JVM compiles what it runs often: several groups of the same size come before.
WARM_UPS = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group lives and how it is set up. `settled`: wait until another group owns everything;
    `empty`: until nobody is in it."""

    zookeeper: str
    broker: str
    group: str
    folder: Path
    settings: Mapping[str, str]
    settled: Callable[[str], None]
    empty: Callable[[str], None]

    @property
    def warm_up(self) -> str:
        """The group of its processes' first members."""
        return f"{self.group}-warm-up"


class Kind(Protocol):
    """The members of one group. `ready` starts their processes, and lets so many form another group
    and leave it; `start` returns when all members have been told; `end` kills what still runs."""

    def ready(self, count: int) -> None: ...
    def start(self, count: int) -> None: ...
    def leave(self) -> None: ...
    def join(self) -> None: ...
    def kill(self) -> None: ...
    def end(self) -> None: ...


class Ours:
    """Members as shipped; all but the last in one process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._hosts: list[LabProcess] = []
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
            config=ConsumerConfig.from_properties(
                {**place.settings, "group.id": group or place.group, "zookeeper.connect": place.zookeeper}
            ),
            streams={TOPIC: 1},
            plant=None,
            events=str(place.folder / f"{place.group}-{name}.jsonl"),
            work_period_ms=1000,
            operations="counts",
        )

    def ready(self, count: int) -> None:
        place = self._place
        leaving = []
        for name, members in (("many", count - 1), ("one", 1)):
            stays = self._spec(f"{place.group}-stays")  # a process ends with its last member
            specs = [self._spec(place.warm_up) for _ in range(members)]
            host = on_this_machine(f"{place.group}-{name}", [stays, *specs], place.folder)
            self._hosts.append(host)
            leaving += [(host, spec.actor) for spec in specs]
        place.settled(place.warm_up)
        for host, actor in leaving:
            host.tell(Leave(actor))
        place.empty(place.warm_up)

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

    def ready(self, count: int) -> None:
        where = [self._jvms[0]] * (count - 1) + [self._jvms[1]]
        for _ in range(WARM_UPS):
            members = [(jvm, self._connector(jvm, self._place.warm_up)) for jvm in where]
            _at_once([jvm.creating(each) for jvm, each in members])
            _at_once([threading.Thread(target=each.shutdown, daemon=True) for _, each in members])

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
                [self._python, script, place.zookeeper, place.broker, TOPIC, *own],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                preexec_fn=die_with_parent(),  # noqa: PLW1509
                process_group=0,
            )
        self._hosts.append(host)
        return host

    def ready(self, count: int) -> None:
        many, one = self._host(), self._host()
        for group in (self._place.warm_up, self._place.group):
            _tell({many: f"prepare {count - 1} {group}", one: f"prepare 1 {group}"})
            if group == self._place.warm_up:
                _tell({many: "start", one: "start"})
                _tell({many: "stop", one: "stop"})

    def start(self, count: int) -> None:
        assert count > 1, "one of them in a process of its own"
        _tell(dict.fromkeys(self._hosts, "start"))

    def leave(self) -> None:
        _tell({self._hosts[0]: "leave"})

    def join(self) -> None:
        _tell({self._hosts[0]: f"prepare 1 {self._place.group}"})
        _tell({self._hosts[0]: "start"})

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


def _tell(commands: Mapping[subprocess.Popen[bytes], str]) -> None:
    """All at once; done when all have done it."""
    for host, command in commands.items():
        assert host.stdin is not None
        host.stdin.write(f"{command}\n".encode())
        host.stdin.flush()
    for host in commands:
        assert host.stdout is not None
        if host.stdout.readline().strip() != b"done":
            sys.exit("pykafka's members ended; their .err file says why")
