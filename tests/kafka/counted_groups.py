"""A group of either kind beside a real broker, and what it asks of ZooKeeper, by the server's own counters.

`cons` tells of each connection the xid of its last request: clients count their requests from 1, pings aside,
so the difference of two looks is exactly how many there were. How many of them were writes tells the
transaction log, which holds the refused ones too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.roles.spec import Leave
from rebalance_lab.trials.stages.processes.nodes import LabProcess, on_this_machine
from rebalance_lab.world.kafka.consumer import ConsoleConsumer
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog
from zkconsumer.config import ConsumerConfig

TOPIC = "t1"
LIMIT_S = 60.0

#: Long enough for a leader finder's next pass (every 200 ms while there is no leader) and a back-off.
QUIET_S = 1.5

#: ZooKeeper's error code.
NODE_EXISTS = -110

_CONNECTION = re.compile(r"sid=(0x[0-9a-f]+).*?,lcxid=0x([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """Requests of one change, by all members together. `conflicts`: creates of what was there: then
    somebody had to try again, which is a matter of luck."""

    reads: int
    writes: int
    conflicts: int


class Members(Protocol):
    """A group's members of one kind."""

    group: str

    def join(self, name: str) -> None: ...
    def leave(self, name: str) -> None: ...
    def kill(self, name: str) -> None: ...
    def end(self) -> None: ...


class Counters:
    """What the sessions of one group have asked of a server so far."""

    def __init__(self, server: EmbeddedZooKeeper, group: str, children: Callable[[str], list[str]]) -> None:
        self._server = server
        self._group = group
        self._children = children
        self._log = TransactionLog(server.transaction_dir)
        self._writes: dict[int, int] = {}
        self._conflicts: dict[int, int] = {}
        self._sessions: dict[int, str] = {}
        self._before: Mapping[int, tuple[int, int]] = {}

    def _poll(self) -> None:
        for transaction in self._log.poll():
            if transaction.cxid > 0:
                session = transaction.session_id
                self._writes[session] = self._writes.get(session, 0) + 1
                if transaction.code == NODE_EXISTS:
                    self._conflicts[session] = self._conflicts.get(session, 0) + 1
            if transaction.path.startswith(f"/consumers/{self._group}/ids/"):
                self._sessions.setdefault(transaction.session_id, transaction.path.rpartition("/")[2])

    def look(self) -> Mapping[int, tuple[int, int]]:
        """Session -> (requests, writes) of the members that are connected."""
        self._poll()
        last = {int(sid, 16): int(xid, 16) for sid, xid in _CONNECTION.findall(self._server.command("cons"))}
        return {sid: (xid, self._writes.get(sid, 0)) for sid, xid in last.items() if sid in self._sessions}

    def settled(self, members: int, partitions: int) -> None:
        """Wait until so many members are registered and connected, own everything and have asked
        nothing for a while."""
        deadline = time.monotonic() + LIMIT_S
        since, seen = time.monotonic(), self.look()
        while True:
            time.sleep(0.05)
            now = self.look()
            there = {len(now), len(self._children(f"/consumers/{self._group}/ids"))}
            if now != seen or there != {members} or self._owned() != partitions:
                since, seen = time.monotonic(), now
            elif time.monotonic() - since > QUIET_S:
                self._before = seen
                return
            assert time.monotonic() < deadline, f"{len(now)} members, {self._owned()} partitions owned"

    def _owned(self) -> int:
        return len(self._children(f"/consumers/{self._group}/owners/{TOPIC}"))

    def _met(self) -> int:
        """Conflicts of the group's members so far."""
        return sum(count for session, count in self._conflicts.items() if session in self._sessions)

    def change(self, make: Callable[[], None], *, members: int, partitions: int) -> Asked:
        """Make a change and wait for rest. What those asked that are there then."""
        before, conflicts = self._before, self._met()
        make()
        self.settled(members, partitions)
        requests = writes = 0
        for session, (asked, written) in self._before.items():
            asked_before, written_before = before.get(session, (0, 0))
            requests += asked - asked_before
            writes += written - written_before
        return Asked(requests - writes, writes, self._met() - conflicts)


class OursAsShipped:
    """Members of ours, each in its own process, with the white list that a ConsoleConsumer has."""

    def __init__(self, group: str, properties: Mapping[str, str], folder: Path) -> None:
        self.group = group
        self._properties = properties
        self._folder = folder
        self._running: dict[str, LabProcess] = {}

    def join(self, name: str) -> None:
        spec = MemberSpec(
            actor=name,
            host=f"host-{name}",
            seed=1,
            rules="shipped",
            assignor=None,
            config=ConsumerConfig.from_properties({**self._properties, "group.id": self.group}),
            streams={},
            plant=None,
            events=str(self._folder / f"{self.group}-{name}.jsonl"),
            whitelist=TOPIC,
            work_period_ms=1000,
        )
        self._running[name] = on_this_machine(f"{self.group}-{name}", [spec], self._folder)

    def leave(self, name: str) -> None:
        process = self._running.pop(name)
        process.may_end = True
        process.tell(Leave(name))
        process.wait()
        process.end()

    def kill(self, name: str) -> None:
        self._running.pop(name).end()

    def end(self) -> None:
        for process in self._running.values():
            process.end()


class RealConsumers:
    """ConsoleConsumers. They commit nothing: ours do not either."""

    def __init__(self, group: str, properties: Mapping[str, str], folder: Path) -> None:
        self.group = group
        self._properties = {**properties, "auto.commit.enable": "false"}
        self._folder = folder
        self._running: dict[str, ConsoleConsumer] = {}

    def join(self, name: str) -> None:
        properties = {**self._properties, "group.id": self.group}
        self._running[name] = ConsoleConsumer(TOPIC, properties, folder=self._folder, name=f"{self.group}-{name}")

    def leave(self, name: str) -> None:
        self._running.pop(name).stop()

    def kill(self, name: str) -> None:
        self._running.pop(name).kill()

    def end(self) -> None:
        for program in self._running.values():
            program.kill()
