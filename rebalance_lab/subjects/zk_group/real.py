"""Real members and their broker, as the runner sees them: JVMs whose logs become event files."""

from __future__ import annotations

import logging
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.recorder import FileSink
from rebalance_lab.kernel import Kernel
from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.roles.real.attempts import MembersZxid
from rebalance_lab.roles.real.log_reader import LogReader, Setting
from rebalance_lab.roles.spec import NodeSpec
from rebalance_lab.subjects.zk_group.lab import whitelist_of
from rebalance_lab.trials.plan import REAL, Plan
from rebalance_lab.trials.stage import RUNNER_SESSION_TICKS, TrialError
from rebalance_lab.trials.stages.processes.programs import ProgramProcess
from rebalance_lab.wire.paths import members_path
from rebalance_lab.world.kafka.broker import START_TIMEOUT_S, KafkaBroker
from rebalance_lab.world.kafka.consumer import ConsoleConsumer
from rebalance_lab.world.kafka.log_file import LogFile
from rebalance_lab.world.process.clocks import identity

_POLL_US = 20_000

_log = logging.getLogger(__name__)


class RealConsumer(ProgramProcess):
    """One ConsoleConsumer."""

    #: A JVM that is asked to end before it has its handlers dies of the signal.
    ends = ProgramProcess.ends | {-signal.SIGTERM}

    def __init__(self, spec: MemberSpec, folder: Path) -> None:
        if spec.fetcher_stop_ms:
            raise TrialError(
                f"{spec.actor}: a real member stops its fetchers as fast as it can, not in {spec.fetcher_stop_ms} ms: "
                "give the slow stop to one of ours"
            )
        config = replace(
            spec.config,
            fetch_wait_max_ms=min(spec.config.fetch_wait_max_ms, spec.work_period_ms),
            partition_assignment_strategy=spec.assignor or spec.config.partition_assignment_strategy,
        )
        self.program = ConsoleConsumer(whitelist_of(spec), config.properties(), folder=folder, name=spec.actor)
        super().__init__(spec.actor, "a real consumer", self.program)

    def start_again(self) -> None:
        raise TrialError(f"{self.actor} is a real consumer: it has no second life under its name; start another node")


class RealEvents:
    """The events of one real member, read from its growing log and kept in its event file."""

    def __init__(
        self, spec: MemberSpec, consumer: RealConsumer, *, wall_offset_us: int, members_zxid: MembersZxid
    ) -> None:
        self._consumer = consumer
        self._file = LogFile(consumer.program.log_file)
        self._sink = FileSink(Path(spec.events))
        self._reader = LogReader(
            spec.actor, _setting(spec), self._sink, wall_offset_us=wall_offset_us, members_zxid=members_zxid
        )
        self._reader.process_started({**identity(), "pid": consumer.program.pid}, _wall_ms())

    def poll(self) -> list[Event]:
        """The events of what was logged since the last call. Once that says that the process stops by
        itself, which it does when its first rebalance has failed, it may end."""
        for line in self._file.poll():
            self._reader.feed(line)
        if self._reader.stopping:
            self._consumer.may_end = True
        return self._reader.take()

    def close(self) -> None:
        self._sink.close()


class MembersLists:
    """When each group's list of members last changed, from the registry's events."""

    def __init__(self) -> None:
        self._changes: dict[str, list[int]] = {}

    def feed(self, event: Event) -> None:
        """Process an event of the registry."""
        if event.kind not in {Kind.CREATED, Kind.DELETED} or event.group is None or event.zxid is None:
            return
        path = str(event.of("path"))
        ids = members_path(event.group)
        if path == ids or path.rpartition("/")[0] == ids:
            self._changes.setdefault(event.group, []).append(event.zxid)

    def zxid(self, group: str, reached: int) -> int:
        """The pzxid of the list as a server shows it that has applied a zxid; -1 if there is none."""
        return max((zxid for zxid in self._changes.get(group, ()) if zxid <= reached), default=-1)


class RealMembers:
    """Real consumers and brokers of one live trial (`trials.subject.Outsiders`). `_brokers`: their data are deleted at
    the trial's end; their logs stay."""

    def __init__(self, plan: Plan, folder: Path, kernel: Kernel) -> None:
        self._plan = plan
        self._folder = folder / "kafka"
        self._kernel = kernel
        self._lists = MembersLists()
        self._brokers: list[KafkaBroker] = []

    def start(
        self, spec: NodeSpec, *, wall_offset_us: int, poll_registry: Callable[[], None]
    ) -> tuple[RealConsumer, RealEvents] | None:
        """Start a real consumer; None for one of our members. Raises TrialError."""
        if not isinstance(spec, MemberSpec) or not spec.real:
            return None
        if not self._plan.has_real_nodes:
            raise TrialError(f"{spec.actor} cannot be a real member, as there are no brokers: run with --members mixed")

        def members_zxid(group: str, reached: int) -> int:
            poll_registry()  # a server logs a write before it answers
            return self._lists.zxid(group, reached)

        consumer = RealConsumer(spec, self._folder)
        return consumer, RealEvents(spec, consumer, wall_offset_us=wall_offset_us, members_zxid=members_zxid)

    def feed(self, event: Event) -> None:
        """Process an event of the registry."""
        self._lists.feed(event)

    async def start_brokers(self, count: int, connect: str) -> bool:
        """Start brokers 0…count-1 if real members are to come, which fetch from them, and wait until all serve. Raises
        EmbeddedServerError, TrialError."""
        if not self._plan.has_real_nodes:
            return False
        session_timeout_ms = RUNNER_SESSION_TICKS * self._plan.number("tick_ms")
        for number in range(count):
            broker = KafkaBroker(number, connect, self._folder, session_timeout_ms=session_timeout_ms)
            self._brokers.append(broker)
        give_up_us = self._kernel.now_us() + int(START_TIMEOUT_S * 1e6)
        for broker in self._brokers:
            while not broker.started():
                if self._kernel.now_us() > give_up_us:
                    raise TrialError(f"broker {broker.broker_id} does not serve after {START_TIMEOUT_S:g} s")
                await self._kernel.sleep(_POLL_US)
        return True

    def check(self) -> None:
        """Raise TrialError if one has ended."""
        for broker in self._brokers:
            if broker.ended:
                raise TrialError(f"broker {broker.broker_id} ended with {broker.popen.returncode}:\n{broker.tail()}")

    def end(self) -> None:
        """Kill them and delete their data. The log names what cannot be deleted."""
        for broker in self._brokers:
            broker.kill()
            try:
                shutil.rmtree(broker.data_dir)
            except FileNotFoundError:  # it ended before it had any
                continue
            except OSError as error:
                _log.warning("the data of broker %d stay in %s: %s", broker.broker_id, broker.data_dir, error)


def _setting(spec: MemberSpec) -> Setting:
    config = spec.config
    started: dict[str, object] = {
        "host": spec.host,
        "rules": REAL,
        "assignor": spec.assignor or "range",
        "pattern": "white_list",
        "streams": {whitelist_of(spec): 1},
        "session_timeout_ms": config.zookeeper_session_timeout_ms,
        "rebalance_backoff_ms": config.rebalance_backoff_ms,
        "rebalance_max_retries": config.rebalance_max_retries,
        "work_period_ms": spec.work_period_ms,
        "fetcher_stop_ms": 0,
        "lab": [],
    }
    return Setting(config.group_id, started, spec.work_period_ms)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
