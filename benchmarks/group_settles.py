"""How long until a group is settled: ours as shipped, Kafka 0.8.2.2's own consumers, and pykafka's.

Run: python benchmarks/group_settles.py [--sizes 8,16,32,64] [--runs 3] [--partitions 64]
     [--pykafka PYTHON] [--json]

One ZooKeeper and one broker (3.9.1) for all; retries 20, back-off 200 ms, range. In each run each kind in turn
forms a group of its own, and then, each at rest before the next:

- start: all members at once;
- leave: one closes its session;
- join: one more comes;
- kill: one is killed (-9), and its session ends.

A step lasts from the first transaction of its cause (a registration; for leave and kill the end of the session)
to the last change of an owner znode before everything is owned and nothing more is written: all by the server's
own log, so the same for each kind. `--pykafka` names the Python of an environment with pykafka; its
BalancedConsumer is measured at sizes up to 16. Exit code 1 when a median of ours is above another's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from group_settles_members import TOPIC, Kind, Ours, Place, PyKafka, RealKafka
from kazoo.client import KazooClient

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.testing.ensemble import wait_until
from rebalance_lab.wire.payloads import read_broker, topic_payload
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.live.java import zookeeper_version
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog

STEPS = ("start", "leave", "join", "kill")

#: pykafka's members start a dozen threads each, in Python.
PYKAFKA_MOST = 16

#: After the last write of a group for so long, five back-offs, nobody will try again.
QUIET_S = 1.0
LIMIT_S = 120.0

SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "rebalance.backoff.ms": "200",
    "rebalance.max.retries": "20",
}


class NotMeasured(Exception):
    """A group did not settle."""


@dataclass(slots=True)
class Registry:
    """Ids and owners of one group, from the transaction log; times in epoch ms."""

    group: str
    log: TransactionLog
    ids: dict[str, int] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    first_cause_ms: int = 0
    last_owner_ms: int = 0
    last_write_s: float = 0.0

    def poll(self) -> None:
        for transaction in self.log.poll():
            if self._takes(transaction):
                self.last_write_s = time.monotonic()

    def _takes(self, transaction: Transaction) -> bool:
        """Whether it is of a member of the group."""
        base, _, name = transaction.path.rpartition("/")
        if transaction.kind is TransactionKind.SESSION_CLOSED:
            return self._closed(transaction)
        if base == f"/consumers/{self.group}/ids":
            if transaction.kind is TransactionKind.CREATE:
                self.ids[name] = transaction.session_id
                self._caused(transaction)
        elif base.startswith(f"/consumers/{self.group}/owners/"):  # pykafka spells the topic b't1'
            if transaction.kind is TransactionKind.CREATE:
                self.owners[name] = transaction.session_id
            elif transaction.kind is TransactionKind.DELETE:
                self.owners.pop(name, None)
            self.last_owner_ms = transaction.wall_ms
        return transaction.session_id in self.ids.values()

    def _closed(self, transaction: Transaction) -> bool:
        gone = [name for name, session in self.ids.items() if session == transaction.session_id]
        for name in gone:
            del self.ids[name]
        for name in [name for name, session in self.owners.items() if session == transaction.session_id]:
            del self.owners[name]
        if gone:
            self._caused(transaction)
        return bool(gone)

    def _caused(self, transaction: Transaction) -> None:
        self.first_cause_ms = self.first_cause_ms or transaction.wall_ms

    def step(self, do: Callable[[], None], members: int, partitions: int) -> float:
        """Do something and wait until the group has settled. Seconds it took."""
        self.poll()
        self.first_cause_ms = 0
        do()
        give_up = time.monotonic() + LIMIT_S
        while True:
            self.poll()
            whole = len(self.ids) == members and len(self.owners) == partitions and self.first_cause_ms
            if whole and time.monotonic() - self.last_write_s > QUIET_S:
                return (self.last_owner_ms - self.first_cause_ms) / 1000
            if time.monotonic() > give_up:
                raise NotMeasured(f"{self.group}: {len(self.ids)} of {members} members, {len(self.owners)} owners")
            time.sleep(0.01)


def measured(kind: Kind, registry: Registry, size: int, partitions: int) -> dict[str, float]:
    """Step -> seconds, for one group of `size` members."""
    try:
        kind.ready(size)
        return {
            "start": registry.step(lambda: kind.start(size), size, partitions),
            "leave": registry.step(kind.leave, size - 1, partitions),
            "join": registry.step(kind.join, size, partitions),
            "kill": registry.step(kind.kill, size - 1, partitions),
        }
    finally:
        kind.end()


def kinds(size: int, pykafka: Path | None) -> dict[str, Callable[[Place], Kind]]:
    """Those that take part at a size."""
    found: dict[str, Callable[[Place], Kind]] = {"ours": Ours, "real": RealKafka}
    if pykafka is not None and size <= PYKAFKA_MOST:
        python = pykafka
        found["pykafka"] = lambda place: PyKafka(place, python)
    return found


def measure(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, int, dict[str, float]]]:
    """(kind, size, seconds of each step) of every group. They take turns in going first."""
    with EmbeddedZooKeeper.start(folder / "zookeeper") as server:
        session = KazooClient(server.connect_string)
        session.start()
        broker = KafkaBroker(0, server.connect_string, folder / "kafka")
        try:
            broker.wait_until_started()
            replicas = {number: [0] for number in range(options.partitions)}
            session.create(f"/brokers/topics/{TOPIC}", topic_payload(replicas))
            last = f"/brokers/topics/{TOPIC}/partitions/{options.partitions - 1}/state"
            wait_until(lambda: session.exists(last) is not None, "a leader of every partition")

            def settled(group: str) -> None:
                owners = f"/consumers/{group}/owners/{TOPIC}"
                wait_until(
                    lambda: bool(session.exists(owners)) and len(session.get_children(owners)) == options.partitions,
                    f"group {group} to own everything",
                )

            def empty(group: str) -> None:
                wait_until(lambda: not session.get_children(f"/consumers/{group}/ids"), f"group {group} to be empty")

            found = read_broker(0, session.get("/brokers/ids/0")[0])
            for size in options.sizes:
                for run in range(options.runs):
                    several = list(kinds(size, options.pykafka).items())
                    for name, make in several[run % len(several) :] + several[: run % len(several)]:
                        group = f"{name}-{size}-{run}"
                        address = f"{found.host}:{found.port}"
                        place = Place(server.connect_string, address, group, folder, SETTINGS, settled, empty)
                        registry = Registry(group, TransactionLog(server.transaction_dir))
                        yield name, size, measured(make(place), registry, size, options.partitions)
        finally:
            broker.kill()
            session.stop()
            session.close()


def main() -> int:
    options = arguments()
    results: dict[tuple[int, str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="group-settles-") as folder:
        for kind, size, took in measure(options, Path(folder)):
            print(f"{kind} {size}: " + ", ".join(f"{step} {took[step]:.2f} s" for step in STEPS), file=sys.stderr)
            for step in STEPS:
                results.setdefault((size, step, kind), []).append(took[step])
    medians = {key: statistics.median(values) for key, values in results.items()}
    slower = [key for key, value in medians.items() if value < medians[key[0], key[1], "ours"]]
    if options.json:
        print(json.dumps(report(options, results), indent=1))
    else:
        show(options, results)
    for size, step, kind in slower:
        print(f"ours is slower than {kind} at {size} members: {step}", file=sys.stderr)
    return 1 if slower else 0


def show(options: argparse.Namespace, results: dict[tuple[int, str, str], list[float]]) -> None:
    """A table for people."""
    names = ("ours", "real", "pykafka")
    print("| members | step | " + " | ".join(f"{name}, s (least to most)" for name in names) + " |")
    print("| ---: | --- | " + " | ".join("---:" for _ in names) + " |")
    for size in options.sizes:
        for step in STEPS:
            cells = [results.get((size, step, name)) for name in names]
            texts = [
                "" if each is None else f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
                for each in cells
            ]
            print(f"| {size} | {step} | " + " | ".join(texts) + " |")


def report(options: argparse.Namespace, results: dict[tuple[int, str, str], list[float]]) -> dict[str, Any]:
    """The same as data."""
    rows = [
        {"members": size, "step": step, "kind": kind, "seconds": values}
        for (size, step, kind), values in results.items()
    ]
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "zookeeper": zookeeper_version()}
    return {"partitions": options.partitions, "settings": SETTINGS, "machine": machine, "rows": rows}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default="8,16,32,64", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--runs", default=3, type=int)
    parser.add_argument("--partitions", default=64, type=int)
    parser.add_argument("--pykafka", type=Path, help="the Python of an environment with pykafka")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
