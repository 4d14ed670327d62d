"""When TCP sends again what was lost: the times that the simulator and the live proxy use.

Source: Linux, tcp_retransmit_timer. A connection's first retransmission comes after `RETRY_DATA_US`
(TCP_RTO_MIN) or, for the SYN that opens it, after `RETRY_SYN_US` (TCP_TIMEOUT_INIT); each further one
after twice as long as the one before, up to `RETRY_LIMIT_US` (TCP_RTO_MAX).
"""

from __future__ import annotations

RETRY_DATA_US = 200_000
RETRY_SYN_US = 1_000_000
RETRY_LIMIT_US = 120_000_000


def retried_us(lost_us: int, healed_us: int, first_us: int) -> int:
    """The time at which TCP first repeats, after the network has healed, what was lost at `lost_us`. `first_us`:
    `RETRY_DATA_US` or `RETRY_SYN_US`. All times in µs of one clock."""
    due_us, wait_us = lost_us + first_us, first_us
    while due_us < healed_us:  # ends: the waits grow to two minutes
        wait_us = min(2 * wait_us, RETRY_LIMIT_US)
        due_us += wait_us
    return due_us
