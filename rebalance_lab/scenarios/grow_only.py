"""Partitions can be added to a topic, and never removed (claim P3).

A client writes records with keys, and chooses partitions as Kafka's producer does. In the middle the topic gets more
partitions, and later fewer are asked for. There are three reasons to refuse that. If the partitions are deleted, their
messages are lost. If the messages are kept and appended to other partitions, their order there breaks. To keep the
order as well is too complex. When the topic grows, nothing is moved either, and so the order of a key breaks there: its
new records are in another partition than the old ones. In the control nobody asks for another number.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.resize import resized
from rebalance_lab.roles.keyed_client import KeyedClientSpec
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ClientPlant,
    ProducerOptions,
    ReplicationLab,
    number_of,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours, usual
from rebalance_lab.trials.stage import NodeOptions

#: The topic with keys.
KEYED = "keyed"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedOptions(NodeOptions):
    """The client that writes records with keys."""

    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> KeyedClientSpec:
        return KeyedClientSpec(
            actor=actor,
            host=actor,
            seed=plan.seed,
            events=events,
            connect=connect,
            session_timeout_ms=plan.number("session_timeout_ms"),
            topic=KEYED,
            messages=plan.number("keyed_messages"),
            keys=plan.number("keys"),
            pause_us=plan.number("pause_us"),
            metadata_max_age_ms=plan.number("metadata_max_age_ms"),
            resizes=resizes(plan),
            request_timeout_ms=plan.number("request_timeout_ms"),
            ignores_keys=plan.plant == ClientPlant.IGNORES_KEYS,
        )


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
    client = lab.start("k1", KeyedOptions())
    if not plan.control:
        await resized(lab, client, len(resizes(plan)))
    await lab.keyed_read()
    await lab.conclude()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """Growth is done and shrinking refused; keys move at the growth and nowhere else. Nothing is lost."""
    return usual(REPLICATION)


def demands(plan: Plan) -> None:
    if plan.number("grown") <= plan.number("partitions"):
        raise PlanError(f"grown={plan.number('grown')}: must be above partitions={plan.number('partitions')}")
    if plan.number("keyed_messages") < 6 * plan.number("keys"):
        raise PlanError(
            f"keyed_messages={plan.number('keyed_messages')}: must be at least {6 * plan.number('keys')}, two records "
            "of each key before the growth, after it, and after the topic was to shrink"
        )


SCENARIO = Scenario(
    name="grow-only",
    subject=REPLICATED,
    summary="a topic gets more partitions under load, and is to get fewer again",
    parameters=(
        Parameter("partitions", 2, "partitions", "of the topic with keys", 1),
        Parameter("grown", 5, "partitions", "after it has grown", 2),
        Parameter("keys", 12, "", "keys of the records", 2, maximum=1000),
        Parameter("keyed_messages", 180, "", "records with keys", 12, maximum=1_000_000),
        Parameter("metadata_max_age_ms", 300, "ms", "metadata.max.age.ms of the client with keys", 1),
        *with_default(COMMON, messages=50, pause_us=20_000),
    ),
    script=grow_only,
    expects=expects,
    claims=("P3",),
    demands=demands,
    real=only_ours("the client with keys is not recorded there yet"),
)
