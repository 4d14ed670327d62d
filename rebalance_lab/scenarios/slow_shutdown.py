"""A broker asks to shut down, and goes before the controller has moved what it leads (KAFKA-4444).

The broker leads many partitions, and ZooKeeper is slow. A controller of 0.8.2 writes one state after another, so the
time that it takes grows with their number. The broker waits `socket_timeout_ms` for an answer (Kafka: 30 s), asks again
after `backoff_ms`, three times in all, and then goes. The controller is still at its first request by then: what it has
not come to yet has no leader until it does. The broker comes back in the end. The cure, `form=1.1`: ten states are
written at once. A longer `socket_timeout_ms` helps as well. In the control no broker shuts down.
"""

from __future__ import annotations

from controller.forms import ControllerForm
from rebalance_lab.checks.leaderless_partition import bound_us
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    FORM,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    lacks_a_replica,
    number_of,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours

#: Partitions of each topic that the broker leads. A slow controller takes a while to elect the first leaders of more.
PARTITIONS = 8

#: controlled.shutdown.max.retries: how often the broker asks.
ASKS = 3

#: The broker that shuts down.
LEAVES = 1


async def slow_shutdown(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(
        spare_controller=True,
        first=plan.number("brokers"),
        configs={LEAVES: {"controlled_shutdown_enable": True, "controlled_shutdown_max_retries": ASKS}},
        lab_controller_form=ControllerForm(plan.text("form")),
        controller_socket_timeout_ms=plan.number("socket_timeout_ms"),
        controlled_shutdown_retry_backoff_ms=plan.number("backoff_ms"),
    )
    leaves = next(each for each in lab.brokers if number_of(each.actor) == LEAVES)
    replicas = [number_of(each.actor) for each in lab.isr]
    for number in range(plan.number("topics")):
        order = [LEAVES, *(each for each in replicas if each != LEAVES)]
        await lab.created_in_sync(f"t{number + 2}", order, PARTITIONS)
    lab.start("c1", ProducerOptions())
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "a broker shuts down")
    if not plan.control:
        await leave(lab, leaves)
        await lab.until(lambda: lab.leader not in (None, leaves), "another leader")
        await lab.sleep_ms(int(_takes_ms(plan)))
        await restart(lab, leaves)
    await lab.conclude()


def _led(plan: Plan) -> int:
    """How many partitions the broker leads: those, and the one of the client."""
    return plan.number("topics") * PARTITIONS + 1


def _takes_ms(plan: Plan) -> float:
    """How long the controller takes to write the states of all that the broker leads."""
    trip_ms = (plan.number("latency_min_us") + plan.number("latency_max_us")) / 1000
    return _led(plan) * trip_ms / ControllerForm(plan.text("form")).in_flight


def _waits_ms(plan: Plan) -> int:
    """How long the broker asks, at most."""
    return ASKS * plan.number("socket_timeout_ms") + (ASKS - 1) * plan.number("backoff_ms")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Partitions are left without a leader; whether for longer than an election may take is a matter of numbers."""
    left_ms = _takes_ms(plan) - _waits_ms(plan)
    if plan.control or left_ms < 0:
        return usual_of(plan)
    limit_ms = bound_us(plan.world, plan.parameters, _led(plan)) / 1000
    return usual_of(plan, leaderless_partition=Outcome.VIOLATED if left_ms > 1.2 * limit_ms else None)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    lacks_a_replica(plan)


SCENARIO = Scenario(
    name="slow-shutdown",
    subject=REPLICATED,
    summary="a broker shuts down before the controller has moved what it leads",
    parameters=(
        Parameter("topics", 10, "", "topics of eight partitions that the broker leads", 1, maximum=100),
        Parameter("socket_timeout_ms", 800, "ms", "controller.socket.timeout.ms", 1, maximum=3_600_000),
        Parameter("backoff_ms", 200, "ms", "controlled.shutdown.retry.backoff.ms", 0, maximum=3_600_000),
        *with_default(
            (FORM, *COMMON),
            form=ControllerForm.V0_8_2.value,
            messages=60,
            min_isr=1,
            pause_us=50_000,
            latency_min_us=50_000,
            latency_max_us=50_000,
        ),
    ),
    script=slow_shutdown,
    expects=expects,
    worlds=("simulated",),  # others have no slow ZooKeeper
    demands=demands,
    real=only_ours("they take part in no simulated trial"),
)
