"""A group of ZooKeeper-era consumers for a test: processes that share a topic, and can be harmed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.testing.ensemble import ZooKeeperEnsemble, wait_until
from rebalance_lab.trials.fixture import broker_znode
from rebalance_lab.trials.live_processes import HostProcess
from rebalance_lab.wire.paths import broker_path, members_path, owner_path, owners_path, topic_path
from rebalance_lab.wire.payloads import topic_payload
from rebalance_lab.world.live.processes import RunState, wait_for_state

_SIGNAL_LIMIT_S = 10.0
_TIMEOUT_S = 20.0

#: A group that changed nothing for so long has nothing more to do.
_QUIET_BACKOFFS = 2


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How a group is made. `rules`: `described` (the articles) or `shipped` (Kafka 0.8.2.2); times
    in milliseconds, as Kafka names them."""

    group: str = "group"
    topic: str = "topic"
    partitions: int = 6
    members: int = 2
    rules: str = "shipped"
    session_timeout_ms: int = 2000
    rebalance_backoff_ms: int = 300
    rebalance_max_retries: int = 10


class ConsumerGroup:
    """What the fixture `consumer_group` makes. Members are named m1, m2, …; below `chroot` the group
    is alone in its ZooKeeper, with znodes as Kafka 0.8 has them."""

    def __init__(self, zookeeper: ZooKeeperEnsemble, chroot: str, folder: Path, settings: GroupSettings) -> None:
        self.settings = settings
        self.connect_string = zookeeper.connect_string + chroot
        self._folder = folder
        self._processes: dict[str, HostProcess] = {}
        self._started = 0
        self._make_chroot(zookeeper.connect_string, chroot)
        self._client = KazooClient(self.connect_string, timeout=_TIMEOUT_S)
        self._client.start(timeout=_TIMEOUT_S)
        try:
            self._write_cluster()
        except BaseException:
            self.end()
            raise

    @staticmethod
    def _make_chroot(connect: str, chroot: str) -> None:
        client = KazooClient(connect, timeout=_TIMEOUT_S)
        client.start(timeout=_TIMEOUT_S)
        try:
            client.ensure_path(chroot)
        finally:
            client.stop()
            client.close()

    def _write_cluster(self) -> None:
        """A broker, and the topic on it, as znodes."""
        replicas = {partition: [0] for partition in range(self.settings.partitions)}
        self._client.create(broker_path(0), broker_znode(0), makepath=True)
        self._client.create(topic_path(self.settings.topic), topic_payload(replicas), makepath=True)

    # -- facts ------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[str, ...]:
        """Those that were neither killed nor left, in the order they came."""
        return tuple(self._processes)

    def consumer_ids(self) -> tuple[str, ...]:
        """The ids that are registered, sorted."""
        return tuple(sorted(self._children(members_path(self.settings.group))))

    def owners(self) -> dict[int, str]:
        """Partition -> consumer thread id, of those that have an owner."""
        return {partition: data for partition, (data, _) in self._owner_znodes().items()}

    def partitions_of(self, member: str) -> tuple[int, ...]:
        """What the registry says a member owns, sorted."""
        mine = f"{self.settings.group}_host-{member}-"
        return tuple(sorted(partition for partition, owner in self.owners().items() if owner.startswith(mine)))

    def _children(self, path: str) -> list[str]:
        try:
            return list(self._client.get_children(path))
        except NoNodeError:
            return []

    def _owner_znodes(self) -> dict[int, tuple[str, int]]:
        """Partition -> who owns it, and the zxid since when."""
        found = {}
        for name in self._children(owners_path(self.settings.group, self.settings.topic)):
            try:
                data, stat = self._client.get(owner_path(self.settings.group, self.settings.topic, int(name)))
            except NoNodeError:
                continue
            found[int(name)] = (data.decode(), stat.czxid)
        return found

    # -- waiting ----------------------------------------------------------------------------

    def wait_until_settled(self) -> dict[int, str]:
        """Wait until just the living are registered, every partition is owned by one of them, and
        nothing has changed for two back-offs. Returns the owners. Raises TimeoutError."""
        wait_until(self._settled, f"group {self.settings.group} to settle")
        return self.owners()

    def _settled(self) -> bool:
        """Looks twice: znodes that were deleted and made again have other zxids."""
        before = self._complete()
        if before is None:
            return False
        time.sleep(_QUIET_BACKOFFS * self.settings.rebalance_backoff_ms / 1000)
        return self._complete() == before

    def _complete(self) -> dict[int, tuple[str, int]] | None:
        """The owners, if all is owned by members that live; None if not."""
        for process in self._processes.values():
            process.check()
        owners, ids = self._owner_znodes(), self.consumer_ids()
        living = sorted(map(self._name_of, ids)) == sorted(self._processes)  # not as many: one may have died
        whole = set(owners) == set(range(self.settings.partitions))
        theirs = all(owner.rpartition("-")[0] in ids for owner, _ in owners.values())
        return owners if living and whole and theirs else None

    def _name_of(self, consumer_id: str) -> str:
        """The member who registered an id (group_host-name-ms-uuid)."""
        return consumer_id.removeprefix(f"{self.settings.group}_host-").partition("-")[0]

    # -- changes ----------------------------------------------------------------------------

    def add_member(self) -> str:
        """Start another member, and do not wait for it. Returns its name."""
        self._started += 1
        name = f"m{self._started}"
        settings = self.settings
        spec = MemberSpec(
            actor=name,
            host=f"host-{name}",
            seed=self._started,
            rules=settings.rules,
            assignor=None,
            properties={
                "group.id": settings.group,
                "zookeeper.connect": self.connect_string,
                "zookeeper.session.timeout.ms": str(settings.session_timeout_ms),
                "rebalance.backoff.ms": str(settings.rebalance_backoff_ms),
                "rebalance.max.retries": str(settings.rebalance_max_retries),
            },
            streams={settings.topic: 1},
            plant=None,
            events=str(self._folder / f"{name}.jsonl"),
        )
        self._processes[name] = HostProcess(name, [spec], self._folder)
        return name

    def leave(self, member: str) -> None:
        """Ask for a clean leave (SIGTERM); it has left on return. Raises TrialError: it did not, and
        was killed (a paused one cannot leave)."""
        process = self._processes.pop(member)
        process.may_end = True
        process.popen.terminate()
        try:
            process.wait()
        finally:
            process.end()

    def kill(self, member: str) -> None:
        """SIGKILL. Its session lives on until it expires."""
        process = self._processes.pop(member)
        process.popen.kill()
        process.end()

    def pause(self, member: str) -> None:
        """SIGSTOP: past its session it becomes a zombie."""
        self._signal(member, signal.SIGSTOP, RunState.STOPPED)

    def resume(self, member: str) -> None:
        self._signal(member, signal.SIGCONT, RunState.ALIVE)

    def _signal(self, member: str, number: signal.Signals, wanted: RunState) -> None:
        pid = self._processes[member].pid
        os.kill(pid, number)
        wait_for_state(pid, wanted, _SIGNAL_LIMIT_S)

    def end(self) -> None:
        """Kill who still lives."""
        for process in self._processes.values():
            process.end()
        self._processes.clear()
        self._client.stop()
        self._client.close()


@contextmanager
def running_group(
    zookeeper: ZooKeeperEnsemble, chroot: str, folder: Path, settings: GroupSettings
) -> Iterator[ConsumerGroup]:
    """A group with its first members started, for as long as the context lasts."""
    group = ConsumerGroup(zookeeper, chroot, folder, settings)
    try:
        for _ in range(settings.members):
            group.add_member()
        yield group
    finally:
        group.end()
