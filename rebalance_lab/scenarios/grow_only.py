"""Partitions can be added to a topic, and never removed (claim P3).

A client writes records with keys, and chooses partitions as Kafka's producer does. In the middle the topic gets more
partitions, and later fewer are asked for. There are three reasons to refuse that. If the partitions are deleted, their
messages are lost. If the messages are kept and appended to other partitions, their order there breaks. To keep the
order as well is too complex. When the topic grows, nothing is moved either, and so the order of a key breaks there: its
new records are in another partition than the old ones. In the control nobody asks for another number.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.resize import resized
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.keyed import GROWTH, KEYED, KeyedOptions, grows
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    number_of,
    with_default,
)
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, only_ours


def resizes(plan: Plan) -> tuple[tuple[int, int], ...]:
    """After how many acknowledged records the client asks for how many partitions."""
    messages, before, after = (plan.number(each) for each in ("keyed_messages", "partitions", "grown"))
    return () if plan.control else ((messages // 3, after), (2 * messages // 3, before))


async def grow_only(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble()
    lab.start("c1", ProducerOptions())
    ids = [number_of(each.actor) for each in lab.brokers]
    partitions = range(plan.number("partitions"))
    await lab.create(KEYED, {each: [*ids[each % len(ids) :], *ids[: each % len(ids)]] for each in partitions})
    await lab.written(1)
    lab.phase("control" if plan.control else "growth")
    client = lab.start("k1", KeyedOptions(resizes=resizes(plan)))
    if not plan.control:
        await resized(lab, client, len(resizes(plan)))
    await lab.keyed_read()
    await lab.conclude()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Growth is done and shrinking refused; keys move at the growth and nowhere else. Nothing is lost."""
    return usual_of(plan)


SCENARIO = Scenario(
    name="grow-only",
    subject=REPLICATED,
    summary="a topic gets more partitions under load, and is to get fewer again",
    parameters=(
        *GROWTH,
        *with_default(COMMON, messages=50, pause_us=20_000),
    ),
    script=grow_only,
    expects=expects,
    claims=("P3",),
    demands=grows,
    real=only_ours("the client with keys is not recorded there yet"),
)
