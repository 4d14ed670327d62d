"""One member joins a settled group of simulated members that read one znode a request.

Run: python benchmarks/simulated_join.py [--members 1000] [--partitions 1000] [--seed 1] [--profile FILE] [--json]

The group starts together, with 20 retries, and settles; then one more joins, which costs about members² reads.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import resource
import time
from collections import Counter

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.roles.member import MemberSpec, run_member
from rebalance_lab.subjects.zk_group.cluster import write_fixture
from rebalance_lab.world.ports import SessionEventKind, ZooKeeper
from rebalance_lab.world.simulated.settings import SIMULATED_CONNECT
from rebalance_lab.world.simulated.world import SimulatedWorld
from rebalance_lab.zkclient.pipelined import PipelinedClient
from zkconsumer.config import ConsumerConfig

TOPIC, GROUP = "t1", "g1"

#: No rebalance runs and no notification waits for so long: the group rests.
QUIET_US = 5_000_000

#: Work on partitions is reported this seldom: it is not what is measured.
WORK_PERIOD_MS = 600_000


class Tally:
    """A sink that keeps numbers only."""

    def __init__(self) -> None:
        self.kinds: Counter[Kind] = Counter()
        self.operations: Counter[str] = Counter()
        self.busy = 0
        self.changed_us = 0
        self.failed = 0

    def write(self, event: Event) -> None:
        self.kinds[event.kind] += 1
        if event.kind is Kind.OPERATIONS:
            counts = event.of("counts")
            assert isinstance(counts, dict)
            self.operations.update(counts)
            return
        if event.kind in (Kind.REBALANCE_BEGAN, Kind.NOTIFICATION_QUEUED):
            self.busy += 1
        elif event.kind in (Kind.REBALANCE_ENDED, Kind.NOTIFICATION_HANDLED):
            self.busy -= 1
            self.failed += event.of("outcome") == "failed"
        self.changed_us = event.at_us

    @property
    def reads(self) -> int:
        return self.operations["get"] + self.operations["children"] + self.operations["exists"]


class Group:
    """Members in processes of their own, on one simulated server."""

    def __init__(self, seed: int, members: int, partitions: int) -> None:
        self.simulation = Simulation(seed)
        self.tally = Tally()
        self.world = SimulatedWorld(self.simulation, seed, self.tally, operations="counts")
        self.kernel = self.simulation.kernel
        self._seed = seed
        self._members = members
        self._partitions = partitions

    def start(self, number: int) -> None:
        actor = f"m{number}"
        process = self.kernel.process(actor)
        spec = MemberSpec(
            actor=actor,
            host=f"host-{actor}",
            seed=self._seed,
            rules="shipped",
            assignor=None,
            config=ConsumerConfig(
                zookeeper_connect=SIMULATED_CONNECT,
                zookeeper_session_timeout_ms=10_000,
                group_id=GROUP,
                rebalance_max_retries=20,
            ),
            streams={TOPIC: 1},
            plant=None,
            events="",
            work_period_ms=WORK_PERIOD_MS,
            operations="counts",
        )
        environment = self.world.environment(actor, process)
        closing = self.kernel.flag(f"close {actor}")
        self.kernel.start_root(run_member(environment, spec, closing), f"member {actor}", process=process)

    async def prepare(self) -> ZooKeeper:
        runner = self.world.environment("runner", self.kernel.process("runner"))
        session = runner.zookeeper.open(SIMULATED_CONNECT, 10_000)
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
        await write_fixture(session, brokers=1, topics={TOPIC: self._partitions})
        await PipelinedClient(session).ensure_path(f"/consumers/{GROUP}/ids")
        return session

    async def settled(self) -> None:
        self.tally.changed_us = self.kernel.now_us()
        while self.tally.busy or self.kernel.now_us() - self.tally.changed_us < QUIET_US:
            await self.kernel.sleep(QUIET_US // 10)

    async def owned(self, session: ZooKeeper) -> int:
        return len((await session.children(f"/consumers/{GROUP}/owners/{TOPIC}")).value.names)

    async def run(self, profiler: cProfile.Profile | None) -> dict[str, float]:
        session = await self.prepare()
        began_s = time.perf_counter()
        for number in range(self._members):
            self.start(number)
        await self.settled()
        assembled_s = time.perf_counter() - began_s
        assembled_reads, before_us = self.tally.reads, self.kernel.now_us()
        owned = await self.owned(session)
        if owned != self._partitions or self.tally.failed:
            raise SystemExit(f"the group did not settle: {owned} owned, {self.tally.failed} rebalances failed")
        if profiler is not None:
            profiler.enable()
        began_s, began_cpu_s = time.perf_counter(), time.process_time()
        self.start(self._members)
        await self.settled()
        join_s, join_cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        if profiler is not None:
            profiler.disable()
        reads = self.tally.reads - assembled_reads
        assert await self.owned(session) == self._partitions, "a partition has no owner after the join"
        return {
            "members": self._members,
            "assembled_s": round(assembled_s, 2),
            "assembled_reads": assembled_reads,
            "join_s": round(join_s, 2),
            "join_cpu_s": round(join_cpu_s, 2),
            "join_virtual_s": round((self.kernel.now_us() - before_us) / 1e6, 1),
            "join_reads": reads,
            "us_per_read": round(join_cpu_s / reads * 1e6, 2),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--profile", help="write a cProfile of the join alone to this file")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    profiler = cProfile.Profile() if arguments.profile else None
    group = Group(arguments.seed, arguments.members, arguments.partitions)
    answer = group.simulation.run(group.run(profiler))
    group.simulation.close()
    if profiler is not None:
        profiler.dump_stats(arguments.profile)
    if arguments.json:
        print(json.dumps(answer))
        return
    print(
        f"group of {answer['members']}: assembled in {answer['assembled_s']} s ({answer['assembled_reads']} reads); "
        f"one more joined in {answer['join_s']} s ({answer['join_cpu_s']} s of CPU, {answer['join_reads']} reads, "
        f"{answer['us_per_read']} us each, {answer['join_virtual_s']} s of virtual time); "
        f"peak {answer['peak_rss_mb']} MB"
    )


if __name__ == "__main__":
    main()
