"""How long a client repeats a request, and which errors it takes for final. Reading, which goes on in spite of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from rebalance_lab.client.cluster import ClusterClient, NoBroker, RefusedByBroker
from rebalance_lab.client.retries import UNKNOWN_LIMIT_MS, Patience, with_retries
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.world.network import Address, Network


def refused(code: ErrorCode) -> Callable[[], Exception]:
    return lambda: RefusedByBroker(code, "partition t-0")


class Attempts:
    """Attempts of which the first `failures` fail."""

    def __init__(self, failures: int, error: Callable[[], Exception]) -> None:
        self.count = 0
        self.ended_ms = 0
        self._failures = failures
        self._error = error

    async def once(self) -> int:
        self.count += 1
        if self.count <= self._failures:
            raise self._error()
        return self.count

    def run(self, *, repeatable: bool = True) -> int:
        simulation = Simulation(0)
        try:
            return simulation.run(
                with_retries(
                    simulation.kernel, self.once, what="partition t-0", timeout_ms=30_000, repeatable=repeatable
                )
            )
        finally:
            self.ended_ms = simulation.kernel.now_us() // 1000


@pytest.mark.parametrize(
    "error",
    [
        refused(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        refused(ErrorCode.LEADER_NOT_AVAILABLE),
        refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        lambda: NoBroker("partition t-0 has no leader now"),
    ],
)
def test_what_passes_is_waited_for(error: Callable[[], Exception]) -> None:
    assert Attempts(5, error).run() == 6


@pytest.mark.parametrize(
    ("error", "limit_ms"),
    [
        (refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), 30_000),
        (refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), UNKNOWN_LIMIT_MS),
        (refused(ErrorCode.OFFSET_OUT_OF_RANGE), 0),
        (lambda: NoBroker("gone"), 30_000),
    ],
)
def test_no_error_is_waited_for_longer_than_its_limit(error: Callable[[], Exception], limit_ms: int) -> None:
    attempts = Attempts(10_000, error)
    with pytest.raises((NoBroker, RefusedByBroker)):
        attempts.run()
    assert attempts.ended_ms == limit_ms


def test_what_may_have_been_carried_out_is_not_repeated() -> None:
    attempts = Attempts(1, lambda: NoBroker("no answer", outcome_unknown=True))
    with pytest.raises(NoBroker):
        attempts.run(repeatable=False)
    assert attempts.count == 1


def test_what_was_certainly_not_carried_out_is_repeated() -> None:
    assert Attempts(5, lambda: NoBroker("partition t-0 has no leader now")).run(repeatable=False) == 6


def test_an_attempt_that_hangs_ends_with_the_time() -> None:
    """Half of the time is gone when it begins."""
    simulation = Simulation(0)

    async def once() -> None:
        if simulation.kernel.now_us() < 500_000:
            raise NoBroker("away")
        await simulation.kernel.sleep(10**12)

    with pytest.raises(NoBroker, match=r"^partition t-0: no broker answers within 1000 ms$") as raised:
        simulation.run(with_retries(simulation.kernel, once, what="partition t-0", timeout_ms=1000))
    assert raised.value.outcome_unknown
    assert simulation.kernel.now_us() == 1_000_000


def test_a_topic_that_was_there_is_waited_for() -> None:
    """Its broker may have come back just now. One that was never there does not exist."""
    simulation = Simulation(0)
    error = RefusedByBroker(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "partition t-0")

    async def unknown_from_now_on(patience: Patience) -> int:
        began_us = simulation.kernel.now_us()
        try:
            while True:
                patience.failed(error)
                await simulation.kernel.sleep(100_000)
        except RefusedByBroker:
            return (simulation.kernel.now_us() - began_us) // 1000

    async def both() -> tuple[int, int]:
        known = Patience(simulation.kernel, 30_000)
        await simulation.kernel.sleep(60_000_000)
        known.succeeded()
        return await unknown_from_now_on(known), await unknown_from_now_on(Patience(simulation.kernel, 30_000))

    assert simulation.run(both()) == (30_000, UNKNOWN_LIMIT_MS)


def test_a_broker_that_comes_back_has_time_to_learn_its_topics() -> None:
    """It was away for longer than an unknown topic is waited for."""
    attempts = Attempts(40, lambda: NoBroker("away") if attempts.count <= 35 else unknown())
    unknown = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert attempts.run() == 41
    assert attempts.ended_ms > UNKNOWN_LIMIT_MS


class Learning(ClusterClient):
    """Learns of the leader only when it is asked for it. `reached`: the addresses to which it connects."""

    reached: list[Address]

    async def leader(self, topic: str, partition: int) -> int:
        self.nodes = {2: Address("h2", 9092)}
        return 2

    async def _broker(self, address: Address) -> Any:
        self.reached.append(address)


def test_a_leader_that_it_learns_of_only_now_is_reached() -> None:
    simulation = Simulation(0)
    client = Learning(simulation.kernel, cast("Network", None), [], "c")
    client.reached = []
    simulation.run(client.reach_leader("t", 0))
    assert client.reached == [Address("h2", 9092)]
