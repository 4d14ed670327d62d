"""Which server comes next, and after what wait: as Java's StaticHostProvider and ClientCnxn."""

from __future__ import annotations

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.live.connect_string import Server
from rebalance_lab.world.live.hosts import JAVA_WAITS, ConnectWaits, Hosts

THREE = [Server("z1", 1), Server("z2", 2), Server("z3", 3)]
ROUND_ONLY = ConnectWaits(random_us=0, round_us=1_000_000)


def hosts(servers: list[Server], waits: ConnectWaits = ROUND_ONLY, seed: int = 1) -> Hosts:
    return Hosts(servers, RandomStream(seed, "test", "hosts"), waits, {})


def test_servers_are_shuffled_once_and_taken_in_turn() -> None:
    asked = hosts(THREE)
    order = [asked.next()[0] for _ in range(7)]
    assert sorted(order[:3], key=str) == THREE
    assert order[3:6] == order[:3]
    assert order[6] == order[0]
    assert len({tuple(hosts(THREE, seed=seed).servers) for seed in range(40)}) == 6


def test_a_round_without_success_waits_at_the_first_server() -> None:
    asked = hosts(THREE)
    assert [asked.next()[1] for _ in range(7)] == [0, 0, 0, 1_000_000, 0, 0, 1_000_000]


def test_a_round_begins_at_the_server_that_served_last() -> None:
    asked = hosts(THREE)
    asked.next()
    asked.next()
    asked.established()
    assert [asked.next()[1] for _ in range(4)] == [0, 0, 1_000_000, 0]


def test_a_single_server_is_waited_for_each_time() -> None:
    asked = hosts(THREE[:1])
    assert [asked.next()[1] for _ in range(3)] == [0, 1_000_000, 1_000_000]


def test_a_random_wait_once_a_connection_stood() -> None:
    """Java's isFirstConnect: a first round of servers that are not there is quick."""
    asked = hosts(THREE, JAVA_WAITS)
    assert [asked.next()[1] for _ in range(3)] == [0, 0, 0]
    asked.opened()
    rounds = [asked.next()[1] for _ in range(300)]
    for place, wait_us in enumerate(rounds):
        low = 1_000_000 if place % 3 == 0 else 0
        assert low <= wait_us < low + 1_000_000
    assert max(rounds[1::3]) - min(rounds[1::3]) > 900_000


def test_what_is_known_of_old_servers_is_shared() -> None:
    old: dict[Server, None] = {}
    one, other = (Hosts(THREE, RandomStream(1, "test", "hosts"), JAVA_WAITS, old) for _ in range(2))
    assert one.know_multi_read
    one.found_old(THREE[1])
    assert not other.know_multi_read
    assert Hosts(THREE[:1], RandomStream(1, "test", "hosts"), JAVA_WAITS, old).know_multi_read
