"""Idle sessions of the simulated ZooKeeper, each of a process of its own: they idle, are cut off, and all expire.

Run: python benchmarks/simulated_sessions.py [--sessions 100000] [--seed 1] [--json]

Nothing is recorded: this is the price of sessions alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.ports import SessionEventKind, SessionState, ZooKeeper
from rebalance_lab.world.simulated.settings import SIMULATED_CONNECT
from rebalance_lab.world.simulated.zookeeper import SimulatedZooKeeper

TIMEOUT_MS = 10_000

IDLE_US = 600_000_000

#: A tick more than the timeout: by then the server has expired whoever fell silent.
EXPIRED_US = 11_000_000


class Stopwatch:
    """Seconds since the last lap."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def lap_s(self) -> float:
        now = time.perf_counter()
        lap, self._began = now - self._began, now
        return round(lap, 2)


async def idle_and_expire(simulation: Simulation, zookeeper: SimulatedZooKeeper, count: int) -> dict[str, float]:
    kernel, watch = simulation.kernel, Stopwatch()
    processes = [kernel.process(f"m{number}") for number in range(count)]
    sessions: list[ZooKeeper] = [
        zookeeper.factory(process, f"host-{process.name}").open(SIMULATED_CONNECT, TIMEOUT_MS) for process in processes
    ]
    for session in sessions:
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
    connected_s = watch.lap_s()
    await kernel.sleep(IDLE_US)
    assert len(zookeeper.living_sessions) == count, "a session ended although nothing happened"
    idle_s = watch.lap_s()
    for process in processes:
        zookeeper.cut(process, to_server=True, to_client=True)
    await kernel.sleep(EXPIRED_US)
    assert zookeeper.living_sessions == (), "a session lives although its client is cut off"
    expired_s = watch.lap_s()
    assert all(session.state is SessionState.CONNECTING for session in sessions), "a client that cannot know, knows"
    for process in processes:
        zookeeper.heal(process)
    for session in sessions:
        assert (await session.events.get()).kind is SessionEventKind.DISCONNECTED
        assert (await session.events.get()).kind is SessionEventKind.EXPIRED
    return {"connected_s": connected_s, "idle_s": idle_s, "expired_s": expired_s, "told_s": watch.lap_s()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    began = time.perf_counter()
    simulation = Simulation(arguments.seed)
    zookeeper = SimulatedZooKeeper(simulation.kernel, arguments.seed)
    simulation.invariants.append(zookeeper.check)
    answer = simulation.run(idle_and_expire(simulation, zookeeper, arguments.sessions))
    answer |= {
        "sessions": arguments.sessions,
        "total_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(time.process_time(), 2),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    simulation.close()
    if arguments.json:
        print(json.dumps(answer))
        return
    print(
        f"{answer['sessions']} sessions in {answer['total_s']} s ({answer['cpu_s']} s of CPU): "
        f"connected in {answer['connected_s']} s, idle for {IDLE_US // 1_000_000} s of virtual time in "
        f"{answer['idle_s']} s, cut off and expired in {answer['expired_s']} s, told so in {answer['told_s']} s; "
        f"peak {answer['peak_rss_mb']} MB"
    )


if __name__ == "__main__":
    main()
