"""A topic grows while a reassignment of it is written, and loses its new partitions again.

A controller writes the whole assignment of a topic, as it knows it, whatever the znode holds by then. Before it writes
for the first time that a partition moves, it is held. A client asks for more partitions meanwhile, and its request is
taken: nothing says yet that the topic is being reassigned. Then the controller goes on. The cure, `keeps_additions`: it
writes only over what it has read just before, and keeps partitions that it does not know. In the control the partition
moves, and the topic does not grow.

The client gets no answer in time, because the new partitions get no leaders, and asks again; then the topic grows. A
tool that writes the znode itself, as that of 0.8.2 does, asks once.
"""

from __future__ import annotations

from rebalance_lab.broker.halting import Order
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.resize import resized
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.keyed import GROWTH, KEYED, KeyedOptions, grows
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    number_of,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, only_ours
from rebalance_lab.wire.cluster import reassignment_payload
from rebalance_lab.wire.paths import REASSIGNMENT, topic_path


async def lost_growth(lab: ReplicationLab) -> None:
    plan = lab.plan
    keeps = plan.switch("keeps_additions")
    await lab.assemble(spare_controller=True, lab_halts=True, lab_reassignment_keeps_additions=keeps)
    controller = await lab.controlled()
    first, second, third = (number_of(each.actor) for each in lab.brokers if each is not controller)
    await lab.create(KEYED, {each: [first, second] for each in range(plan.number("partitions"))})
    lab.start("c1", ProducerOptions())
    await lab.written(1)
    lab.phase("control" if plan.control else "growth while a reassignment is written")
    if not plan.control:
        await lab.halt(Order(number_of(controller.actor), before=f"set {topic_path(KEYED)},", holds=True))
    await lab.create_znode(REASSIGNMENT, reassignment_payload([((KEYED, 0), [second, third])]))
    if not plan.control:
        await lab.halts()
    await _write(lab)
    await lab.gone(REASSIGNMENT)
    await lab.keyed_read()
    await lab.conclude()


async def _write(lab: ReplicationLab) -> None:
    """The client writes, and has the topic grow. The controller goes on once the znode has the new partitions."""
    plan, grown = lab.plan, lab.plan.number("grown")
    growth = () if plan.control else ((plan.number("keyed_messages") // 3, grown),)
    client = lab.start("k1", KeyedOptions(resizes=growth))
    if not plan.control:
        await lab.grown(KEYED, grown)
        await lab.forget_halt()
        await resized(lab, client, 1)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The topic had more partitions, and has fewer again."""
    lost = not plan.control and not plan.switch("keeps_additions")
    return usual_of(plan, grow_only=Outcome.VIOLATED if lost else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    has_three_replicas(plan)
    grows(plan)


SCENARIO = Scenario(
    name="lost-growth",
    subject=REPLICATED,
    summary="a topic grows while a reassignment of it is written, and shrinks again",
    parameters=(
        Parameter("keeps_additions", False, "", "the cure: the controller keeps partitions that it does not know"),
        *GROWTH,
        *with_default(COMMON, brokers=4, messages=50, pause_us=20_000),
    ),
    script=lost_growth,
    expects=expects,
    demands=demands,
    real=only_ours("they cannot be halted at an operation"),
)
