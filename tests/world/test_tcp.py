"""When TCP sends again what was lost."""

from __future__ import annotations

from rebalance_lab.world.tcp import RETRY_DATA_US, retried_us

SECOND = 1_000_000


def test_tcp_tries_after_twice_as_long_each_time() -> None:
    tries = [retried_us(1000, healed_us, 200) for healed_us in (1000, 1200, 1201, 1600, 1601, 2401)]
    assert tries == [1200, 1200, 1600, 1600, 2400, 4000]
    minutes = 60 * SECOND
    waits = [retried_us(0, hour * 60 * minutes, RETRY_DATA_US) - hour * 60 * minutes for hour in range(1, 20)]
    assert all(0 <= wait <= 2 * minutes for wait in waits)
