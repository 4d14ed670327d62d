"""Random operations under random faults: what clients were told agrees with the tap."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from simulated_bench import Bench, outcome

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future, ProcessState, RandomStream
from rebalance_lab.world.ports import SessionState, ZooKeeper
from rebalance_lab.world.simulated.settings import NetworkSettings

ACTORS = ("m1", "m2", "m3")
STORM_US = 20_000_000


class Storm:
    """`told`: path of each unique create -> how it ended; absent while pending (its process died)."""

    def __init__(self, seed: int) -> None:
        self.bench = Bench(seed, network=NetworkSettings(latency_us=(50, 20_000), loss=0.002))
        self.random = RandomStream(seed, "storm", "faults")
        self.told: dict[str, str] = {}
        self.faults: Counter[str] = Counter()
        self.sessions: dict[str, ZooKeeper] = {}

    async def member(self, actor: str) -> None:
        random = RandomStream(self.random.bits(30), actor, "operations")
        session = self.sessions[actor] = self.bench.open(actor)
        number = 0
        while self.bench.now_us < STORM_US:
            if session.state in (SessionState.EXPIRED, SessionState.CLOSED):
                session = self.sessions[actor] = self.bench.open(actor)
            number += 1
            path = f"/{actor}-{number}"
            create = session.create(path, b"", ephemeral=bool(random.bits(1)))
            reads: list[Future[Any]] = [
                session.children("/", watch=True),
                session.exists(f"/{actor}-{number + 1}", watch=True),
            ]
            self.told[path] = await outcome(create)
            for read in reads:
                await outcome(read)
            if random.below(30) == 0:
                await session.close()
            await self.bench.kernel.sleep(random.below(200_000))

    async def faulty(self) -> None:
        while self.bench.now_us < STORM_US:
            await self.bench.kernel.sleep(self.random.below(1_000_000))
            actor = ACTORS[self.random.below(len(ACTORS))]
            process, session = self.bench.process(actor), self.sessions[actor]
            fault = ("pause", "break", "lose", "expire", "hold")[self.random.below(5)]
            if fault == "pause" and process.state is ProcessState.RUNNING:
                process.pause()
            elif fault == "hold":
                self.bench.zookeeper.hold_connections(process)
            elif session.session_id in self.bench.zookeeper.living_sessions:
                self._at_session(fault, session.session_id)
            self.faults[fault] += 1
            await self.bench.kernel.sleep(self.random.below(3_000_000))
            self._heal()

    def _at_session(self, fault: str, session_id: int) -> None:
        if fault == "break":
            self.bench.zookeeper.break_connection(session_id)
        elif fault == "lose":
            self.bench.zookeeper.lose_next_reply(session_id)
        elif fault == "expire":
            self.bench.zookeeper.expire(session_id)

    def _heal(self) -> None:
        for actor in ACTORS:
            process = self.bench.process(actor)
            self.bench.zookeeper.release_connections(process)
            if process.state is ProcessState.PAUSED:
                process.resume()

    async def main(self) -> None:
        for actor in ACTORS:
            self.bench.kernel.start_root(self.member(actor), actor, process=self.bench.process(actor))
        await self.bench.kernel.sleep(1)
        await self.faulty()
        await self.bench.kernel.sleep(5_000_000)
        for actor in ACTORS:
            self.bench.process(actor).kill()
        await self.bench.kernel.sleep(30_000_000)


@pytest.mark.parametrize("seed", range(25))
def test_what_clients_were_told_agrees_with_the_tap(seed: int) -> None:
    storm = Storm(seed)
    bench = storm.bench
    bench.run(storm.main())

    applied = Counter(each.path for each in bench.transactions if each.kind is TransactionKind.CREATE)
    for path, told in storm.told.items():
        if told == "ok":
            assert applied[path] == 1, f"{path}: told ok"
        elif told == "ConnectionLoss":
            assert applied[path] <= 1, f"{path}: unknown"
        else:
            assert told in ("SessionExpired", "SessionClosed") and applied[path] == 0, f"{path}: told {told}"
    assert Counter(storm.told.values())["ok"] > 50
    assert sum(storm.faults.values()) >= 5

    opened = [each.session_id for each in bench.transactions if each.kind is TransactionKind.SESSION_OPENED]
    closed = [each.session_id for each in bench.transactions if each.kind is TransactionKind.SESSION_CLOSED]
    assert sorted(opened) == sorted(closed) == sorted(set(opened))
    assert bench.zookeeper.living_sessions == ()
    server = bench.server
    assert [path for path, node in server.tree.nodes.items() if node.owner] == []
    assert (len(server.watches.data), len(server.watches.child)) == (0, 0)


def test_the_storms_meet_every_outcome() -> None:
    told: Counter[str] = Counter()
    lost_and_applied = 0
    for seed in range(6):
        storm = Storm(seed)
        storm.bench.run(storm.main())
        told.update(storm.told.values())
        applied = {each.path for each in storm.bench.transactions if each.kind is TransactionKind.CREATE}
        lost_and_applied += sum(how == "ConnectionLoss" and path in applied for path, how in storm.told.items())
    assert set(told) == {"ok", "ConnectionLoss", "SessionExpired"}
    assert 0 < lost_and_applied < told["ConnectionLoss"]
