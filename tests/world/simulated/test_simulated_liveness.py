"""When the leader of an ensemble hears of the clients of its followers, and ends their sessions.

Source: Learner.ping, LearnerSessionTracker and Leader.lead of ZooKeeper 3.4.6 and 3.9.3.
"""

from __future__ import annotations

from functools import cache

from simulated_bench import SECOND, Bench

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.world.simulated.settings import NetworkSettings, ServerSettings

SEEDS = range(200)
TICK_US, HALF_TICK_US = 500_000, 250_000
AT_ONCE = ServerSettings(replication_us=(0, 0))


@cache
def ended_us(seed: int, server: str, *, kill_server: bool = False) -> int:
    """How long after it was last heard the session of a client of `server` ended, which asked it
    for something and was killed in the same instant. `kill_server`: the server too."""
    bench = Bench(seed, servers=("z1", "z2", "z3"), settings=AT_ONCE, network=NetworkSettings(latency_us=(0, 0)))

    async def main() -> int:
        session = await bench.connected("m1", 2000, server)
        await bench.sleep(1.7)
        await session.exists("/")
        heard_us = bench.now_us
        bench.process("m1").kill()
        if kill_server:
            bench.zookeeper.kill_server(server)
        while bench.transactions[-1].kind is not TransactionKind.SESSION_CLOSED:
            await bench.sleep(0.001)
        return bench.now_us - heard_us

    return bench.run(main())


def test_a_followers_client_outlives_the_leaders_by_what_its_report_waits() -> None:
    """A report waits for up to half a tick, a quarter on average: of sessions whose end is rounded up
    to a tick a quarter ends a tick later."""
    later_us = [ended_us(seed, "z1") - ended_us(seed, "z3") for seed in SEEDS]
    assert {round(each, -4) for each in later_us} == {0, TICK_US}
    assert 0.15 < sum(each > HALF_TICK_US for each in later_us) / len(later_us) < 0.35
    longest_us = max(ended_us(seed, "z1") for seed in SEEDS)
    assert 2 * SECOND + TICK_US < longest_us <= 2 * SECOND + TICK_US + HALF_TICK_US + 2000


def test_what_a_follower_heard_and_could_not_report_is_lost() -> None:
    """The leader counts from what it knows, the client's ping before: a third of the session earlier."""
    shortest_us = min(ended_us(seed, "z1", kill_server=True) for seed in SEEDS)
    assert 2 * SECOND - 2 * SECOND // 3 <= shortest_us < 2 * SECOND - 300_000
    assert min(ended_us(seed, "z1") for seed in SEEDS) >= 2 * SECOND
