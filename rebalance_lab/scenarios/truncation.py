"""The truncation ladder: two schedules that older rules of replication do not survive (docs/truncation.md).

The controller has no replica. `schedule` says what happens:

- `cut-off`: the link between the two followers is cut, and the leader dies. One follower leads, and the other hears of
  it, but cannot reach it. Up to 0.10 it cuts its log at its high watermark at once, below what is committed. Then the
  leader dies as well, and the other leads. All was in sync, so nothing may be lost.
- `alone`: the leader and a follower are cut off from each other, so that the leader writes what the follower does not
  get, and dies. The follower leads alone, writes as well, and dies. The former leader returns and is elected, though it
  is not in the ISR, so that what the follower has written is lost by permission. But once the follower is back, their
  logs must be the same. Up to 1.1 the leader's answer is where its own epoch begins, and the follower keeps what stands
  below (KAFKA-6361).

In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.lost_write import REPLICATION
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.restart import restart
from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.kernel import RandomStream
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError, value_text
from rebalance_lab.trials.scenario import Scenario, only_ours, usual

CUT_OFF, ALONE = "cut-off", "alone"

#: The rules that a schedule refutes.
REFUTED = {
    CUT_OFF: (ReplicationRules.HIGH_WATERMARK,),
    ALONE: (ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101),
}

#: How often brokers write their high watermarks down. A broker that is killed returns with one that is so old, and cuts
#: by it up to 0.10.
CHECKPOINT_MS = 50

#: The client's pause between two writes: longer than it takes to kill a leader, shorter than a follower's fetch waits.
PAUSE_US = (5_000, 400_000)

#: A cut lasts so much longer than the session of a leader that dies while it begins.
MARGIN_MS = 1000

#: The first fault comes within this time after the acknowledgement that it waits for.
FAULT_WITHIN_US = 60_000


async def truncation(lab: ReplicationLab) -> None:
    plan = lab.plan
    draws = RandomStream(plan.seed, "runner", "faults")
    await lab.assemble(spare_controller=True, replica_high_watermark_checkpoint_interval_ms=CHECKPOINT_MS)
    lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else plan.text("schedule"))
    if not plan.control:
        await lab.written(plan.number("messages") // 4)
        await lab.tasks.sleep(draws.below(FAULT_WITHIN_US))
        await (_cut_off(lab) if plan.text("schedule") == CUT_OFF else _alone(lab))
    await lab.conclude()


async def _cut_off(lab: ReplicationLab) -> None:
    leader = lab.leader
    assert leader is not None, "nothing has failed yet"
    heir, other = lab.followers
    async with lab.tasks.scope("cut") as scope:
        scope.spawn(cut_link(lab, heir, other, lab.plan.number("cut_ms")), "the two followers")
        await lab.written(lab.acknowledged + 1)  # the followers have it, and do not know yet that it is committed
        await _die(lab, leader)
        await lab.following(other, heir)
        await _die(lab, heir)
    for each in (leader, heir):
        await restart(lab, each)


async def _alone(lab: ReplicationLab) -> None:
    first = lab.leader
    assert first is not None, "nothing has failed yet"
    second, *others = lab.followers
    for each in others:
        await _die(lab, each)
    await lab.in_sync(2)
    async with lab.tasks.scope("cut") as scope:
        scope.spawn(cut_link(lab, first, second, lab.plan.number("cut_ms")), "the leader and the follower")
        await lab.appended(first)
        await _die(lab, first)
    await lab.written(lab.acknowledged + lab.plan.number("alone"))
    await kill(lab, second)
    await lab.leaderless()
    await restart(lab, first)
    await lab.led()
    await lab.written(lab.acknowledged + 1)
    for each in (second, *others):
        await restart(lab, each)


async def _die(lab: ReplicationLab, broker: BrokerNode) -> None:
    await kill(lab, broker)
    await lab.unregistered(broker)
    await lab.until(lambda: lab.leader not in (None, broker), f"another leader than {broker.actor}")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Each schedule refutes the rules that it was made for and those before them, and no later ones."""
    schedule = plan.text("schedule")
    if plan.control:
        return usual(REPLICATION)
    refuted = Outcome.VIOLATED if plan.rules in REFUTED[schedule] else Outcome.CLEAN
    if schedule == CUT_OFF:
        return usual(REPLICATION, lost_write=refuted, leader_completeness=refuted)
    lost = Outcome.VIOLATED
    return usual(REPLICATION, replica_divergence=refuted, lost_write=lost, leader_completeness=lost)


def demands(plan: Plan) -> None:
    alone = plan.text("schedule") == ALONE
    has_three_replicas(plan)
    if plan.switch("unclean") != alone:
        why = "true, because one from outside the ISR is to lead" if alone else "false, because none of these may lead"
        raise PlanError(f"unclean={value_text(plan.switch('unclean'))}: must be {why}")
    if alone and plan.number("min_isr") != 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because a leader is to write alone")
    if not alone and not PAUSE_US[0] <= plan.number("pause_us") <= PAUSE_US[1]:
        raise PlanError(
            f"pause_us={plan.number('pause_us')}: must be from {PAUSE_US[0]} to {PAUSE_US[1]}, so that the leader dies "
            "between two writes, and before a follower hears of the high watermark without one"
        )
    least_ms = latest_end_ms(plan) + MARGIN_MS
    if plan.number("cut_ms") <= least_ms:
        raise PlanError(
            f"cut_ms={plan.number('cut_ms')}: must be above {least_ms}, the time until a dead leader is gone"
        )
    left = plan.number("messages") * 3 // 4 - plan.number("alone")
    if alone and left * plan.number("pause_us") <= plan.number("cut_ms") * 1000:
        raise PlanError(
            f"messages={plan.number('messages')}: too few, because the client must still write after the cut of "
            f"{plan.number('cut_ms')} ms"
        )


SCENARIO = Scenario(
    name="truncation",
    subject=REPLICATED,
    summary="leaders change so that followers of older rules cut their logs at the wrong place",
    parameters=(
        Parameter("schedule", CUT_OFF, "", "what happens to the replicas", choices=(CUT_OFF, ALONE)),
        Parameter("cut_ms", 5000, "ms", "how long the link is cut", 1, maximum=3_600_000),
        Parameter("alone", 20, "", "schedule=alone: records that the follower writes alone", 1, maximum=1_000_000),
        *with_default(COMMON, brokers=4, messages=400, min_isr=1, lag_ms=30_000, pause_us=20_000),
    ),
    script=truncation,
    expects=expects,
    demands=demands,
    real=only_ours("its rule sets are those of the lab's own brokers"),
)
