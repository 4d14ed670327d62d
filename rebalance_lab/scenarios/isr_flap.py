"""The ISR that flaps (KAFKA-19996): a follower joins long before it has caught up, and is dropped again.

The controller has no replica, and `min.insync.replicas` is 2. The follower dies, and a client goes on writing with
acks=1. With one replica in sync the high watermark stands still (from Kafka 3.7 on). The follower comes back, and
fetches one batch at a time. It joins as soon as it has passed the high watermark, though it lacks much of the log. At
its next look the leader finds that the follower has not caught up for too long, and drops it; the follower fetches
again, and joins. This goes on until it has caught up. With the cure, `caught_up`, it does not join before. With
`min_isr=1`, or with `commits_under_min_isr` as up to Kafka 3.6, the high watermark moves with the leader's log, so that
the follower needs all of it. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.client.records import ACKS_LEADER
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario

#: Acknowledged before the follower dies.
BEFORE = 20


async def isr_flap(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(
        spare_controller=True,
        replica_fetch_max_bytes=1,
        lab_joins_caught_up=plan.switch("caught_up"),
        lab_commits_under_min_isr=plan.switch("commits_under_min_isr"),
    )
    lab.start("c1", ProducerOptions(acks=ACKS_LEADER))
    lab.phase("control" if plan.control else "the follower lacks much of the log")
    if not plan.control:
        await _fall_behind(lab)
    await lab.conclude()


async def _fall_behind(lab: ReplicationLab) -> None:
    """The follower dies, and comes back once it lacks as many records as the plan says."""
    await lab.written(BEFORE)
    _, (follower,) = await lab.leader_and_followers()
    before = lab.acknowledged
    await kill(lab, follower)
    await lab.unregistered(follower)
    await lab.in_sync(1)
    await lab.written(before + lab.plan.number("lacks"))
    await restart(lab, follower)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The ISR flaps if the high watermark stands still and the follower need not have caught up."""
    stands_still = plan.number("min_isr") > 1 and not plan.switch("commits_under_min_isr")
    if plan.control or plan.switch("caught_up") or not stands_still:
        return usual_of(plan)
    return usual_of(plan, early_shrink=Outcome.VIOLATED)


def demands(plan: Plan) -> None:
    if plan.number("brokers") != 3:
        raise PlanError(f"brokers={plan.number('brokers')}: must be 3, a controller, a leader and one follower")
    if plan.number("messages") <= BEFORE + plan.number("lacks"):
        raise PlanError(
            f"messages={plan.number('messages')}: must be above {BEFORE + plan.number('lacks')}, because the client "
            "also writes before the follower dies and after it has come back"
        )


def real(plan: Plan) -> None:
    for cure in ("caught_up", "commits_under_min_isr"):
        if plan.switch(cure):
            raise PlanError(f"{cure}=true: Kafka 3.9.1 does not have this cure; leave it out with real brokers")


SCENARIO = Scenario(
    name="isr-flap",
    subject=REPLICATED,
    summary="a follower joins the ISR before it has caught up, is dropped, and joins again",
    parameters=(
        Parameter("lacks", 1000, "", "records that the follower lacks when it comes back", 1, maximum=1_000_000),
        Parameter("caught_up", False, "", "the cure: a follower joins once it has caught up"),
        Parameter("commits_under_min_isr", False, "", "as up to 3.6: the leader alone commits, whatever min_isr"),
        *with_default(COMMON, messages=2500, lag_ms=1000, pause_us=3000),
    ),
    script=isr_flap,
    expects=expects,
    demands=demands,
    real=real,
)
