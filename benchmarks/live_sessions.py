"""500 ZooKeeper sessions from one process: ours against kazoo's client, on one embedded server.

Run: python benchmarks/live_sessions.py [--sessions 500] [--gets 20000] [--runs 5] [--json]

Each run opens all sessions at once and times four things, first with one client, then with the
other (they take turns in going first):

- connect: from the first opening until the last session is connected;
- watch fan-out: each session has one child watch on a common parent; from one create until the
  last watch has been told;
- gets, spread: this many gets in flight at once, shared evenly by all sessions;
- gets, one session: as many in flight from a single session.

Exit code 1 when ours has not the smaller median in each.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.java import zookeeper_version
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.session import LiveSession, LiveZooKeeperFactory

STEPS = ("connect", "watch fan-out", "gets, spread", "gets, one session")

#: Ticks are long here: the server then grants sessions that a busy client does not lose.
TICK_MS = 2000
SESSION_TIMEOUT_MS = 30_000

#: No step takes nearly as long; a client that hangs ends the benchmark.
STEP_LIMIT_S = 120

PARENT = "/benchmark"
PAYLOAD = b'{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1416581234567"}'


class NotMeasured(Exception):
    """A client did not do what was to be timed."""


@dataclass
class Timings:
    """Seconds by step, one for each run."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})

    def time(self, step: str, began: float) -> None:
        self.seconds[step].append(time.perf_counter() - began)


def check(condition: bool, what: str) -> None:
    if not condition:
        raise NotMeasured(what)


# -- ours ---------------------------------------------------------------------------------------


def measure_ours(connect: str, count: int, gets: int, timings: Timings) -> None:
    with LiveKernel() as live:
        factory = LiveZooKeeperFactory(live.kernel, live.loop, RandomStream(0, "benchmark", "sessions"))
        live.on_close(factory.close)

        async def bounded() -> None:
            async with live.kernel.timeout(4 * STEP_LIMIT_S * 1_000_000, "the benchmark"):
                await ours(factory, connect, count, gets, timings)

        live.run(bounded())


async def ours(factory: LiveZooKeeperFactory, connect: str, count: int, gets: int, timings: Timings) -> None:
    began = time.perf_counter()
    sessions = [factory.open(connect, SESSION_TIMEOUT_MS) for _ in range(count)]
    for session in sessions:
        await session.events.get()
    timings.time("connect", began)
    check(len({session.session_id for session in sessions}) == count, "sessions were lost while connecting")

    replies = [session.children(PARENT, watch=True) for session in sessions]
    watches = [(await reply).watch for reply in replies]
    began = time.perf_counter()
    created = sessions[0].create(f"{PARENT}/new", b"")
    for watch in watches:
        assert watch is not None
        await watch
    timings.time("watch fan-out", began)
    await created
    await sessions[0].delete(f"{PARENT}/new")

    await our_gets([sessions[index % count] for index in range(gets)], "gets, spread", timings)
    await our_gets([sessions[0]] * gets, "gets, one session", timings)
    for closed in [session.close() for session in sessions]:
        await closed


async def our_gets(sessions: list[LiveSession], step: str, timings: Timings) -> None:
    began = time.perf_counter()
    replies = [session.get(PARENT) for session in sessions]
    answers = [await reply for reply in replies]
    timings.time(step, began)
    check(all(answer.value.data == PAYLOAD for answer in answers), f"{step}: wrong data")


# -- kazoo's ------------------------------------------------------------------------------------


def measure_kazoo(connect: str, count: int, gets: int, timings: Timings) -> None:
    began = time.perf_counter()
    clients = [KazooClient(connect, timeout=SESSION_TIMEOUT_MS / 1000) for _ in range(count)]
    for connected in [client.start_async() for client in clients]:
        check(connected.wait(STEP_LIMIT_S), "kazoo's client did not connect")
    timings.time("connect", began)
    try:
        check(len({client.client_id[0] for client in clients}) == count, "sessions were lost while connecting")
        kazoo_fan_out(clients, timings)
        kazoo_gets([clients[index % count] for index in range(gets)], "gets, spread", timings)
        kazoo_gets([clients[0]] * gets, "gets, one session", timings)
    finally:
        for client in clients:
            client.stop()
            client.close()


def kazoo_fan_out(clients: list[KazooClient], timings: Timings) -> None:
    told: list[Any] = []
    lock, all_told = threading.Lock(), threading.Event()

    def tell(event: Any) -> None:
        with lock:
            told.append(event)
            if len(told) == len(clients):
                all_told.set()

    for reply in [client.get_children_async(PARENT, watch=tell) for client in clients]:
        reply.get(timeout=STEP_LIMIT_S)
    began = time.perf_counter()
    created = clients[0].create_async(f"{PARENT}/new", b"")
    check(all_told.wait(STEP_LIMIT_S), f"only {len(told)} of kazoo's watches were told")
    timings.time("watch fan-out", began)
    created.get(timeout=STEP_LIMIT_S)
    clients[0].delete(f"{PARENT}/new")


def kazoo_gets(clients: list[KazooClient], step: str, timings: Timings) -> None:
    began = time.perf_counter()
    replies = [client.get_async(PARENT) for client in clients]
    answers = [reply.get(timeout=STEP_LIMIT_S) for reply in replies]
    timings.time(step, began)
    check(all(data == PAYLOAD for data, _ in answers), f"{step}: wrong data")


# -- both ---------------------------------------------------------------------------------------

CLIENTS: dict[str, Callable[[str, int, int, Timings], None]] = {"ours": measure_ours, "kazoo": measure_kazoo}


def measure(sessions: int, gets: int, runs: int) -> dict[str, Timings]:
    """Timings by client."""
    timings = {client: Timings() for client in CLIENTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedZooKeeper.start(Path(folder), tick_ms=TICK_MS) as server,
    ):
        prepare(server.connect_string)
        for run in range(runs):
            for client in sorted(CLIENTS, reverse=run % 2 == 0):
                gc.collect()
                print(f"run {run + 1} of {runs}: {client}", file=sys.stderr)
                CLIENTS[client](server.connect_string, sessions, gets, timings[client])
    return timings


def prepare(connect: str) -> None:
    client = KazooClient(connect)
    client.start(timeout=STEP_LIMIT_S)
    client.create(PARENT, PAYLOAD)
    client.stop()
    client.close()


def summary(timings: dict[str, Timings]) -> dict[str, dict[str, dict[str, float]]]:
    """step -> client -> median, min and max in ms."""
    return {
        step: {
            client: {
                "median_ms": round(statistics.median(timings[client].seconds[step]) * 1000, 1),
                "min_ms": round(min(timings[client].seconds[step]) * 1000, 1),
                "max_ms": round(max(timings[client].seconds[step]) * 1000, 1),
            }
            for client in CLIENTS
        }
        for step in STEPS
    }


def print_table(steps: dict[str, dict[str, dict[str, float]]]) -> None:
    print("| step | ours, ms (least to most) | kazoo, ms (least to most) | kazoo / ours |")
    print("| --- | ---: | ---: | ---: |")
    for step, by_client in steps.items():
        cells = [
            f"**{each['median_ms']:,.1f}** ({each['min_ms']:,.1f} to {each['max_ms']:,.1f})"
            for each in (by_client["ours"], by_client["kazoo"])
        ]
        factor = by_client["kazoo"]["median_ms"] / by_client["ours"]["median_ms"]
        print(f"| {step} | {cells[0]} | {cells[1]} | {factor:.1f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--gets", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    if min(arguments.sessions, arguments.gets, arguments.runs) < 1:
        parser.error("sessions, gets and runs are at least 1")
    steps = summary(measure(arguments.sessions, arguments.gets, arguments.runs))
    where = {
        "sessions": arguments.sessions,
        "gets": arguments.gets,
        "runs": arguments.runs,
        "python": platform.python_version(),
        "kazoo": version("kazoo"),
        "zookeeper": zookeeper_version(),
        "cores": len(os.sched_getaffinity(0)),
    }
    if arguments.json:
        print(json.dumps({**where, "steps": steps}))
    else:
        print(", ".join(f"{name} {value}" for name, value in where.items()) + "\n")
        print_table(steps)
    won = all(clients["ours"]["median_ms"] < clients["kazoo"]["median_ms"] for clients in steps.values())
    return 0 if won else 1


if __name__ == "__main__":
    sys.exit(main())
