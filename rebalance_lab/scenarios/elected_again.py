"""One state of a batch was refused, and the controller elects leaders for the whole batch again.

A broker leads two partitions, and one of them has a follower that the other does not have. It is cut off from its
leader for a while, which writes an ISR without it (as up to Kafka 2.6); the controller hears of that only some seconds
later. Meanwhile the leader shuts down. The controller writes the next leaders of both partitions at once, and one state
is refused, because it has another version. Controllers of 1.1 to 2.3 then elect for both again, and the other partition
gets two leader epochs for one shutdown. The cure, `remainder_only` (2.4): only what was refused is elected again. In
the control nothing fails.

Controllers of Kafka read the states once more before they write, so a write is refused only if a leader writes in that
moment; the lab's controller trusts what it has heard.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    number_of,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours

#: With a shorter one leaders drop followers at the start, and the controller knows of no state how it is.
LEAST_LAG_MS = 1000

#: The topic whose partition lacks the follower that is cut off.
OTHER = "t2"


async def elected_again(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble(spare_controller=True, lab_elects_batch_again=not plan.switch("remainder_only"))
    leader, (*_, follower) = await lab.leader_and_followers()
    replicas = [number_of(each.actor) for each in lab.isr if each is not follower]
    await lab.create(OTHER, {0: replicas})
    await lab.until(lambda: _isr(lab) == set(replicas), f"the replicas of {OTHER} in sync")
    lab.start("c1", ProducerOptions())
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "the leader shuts down")
    if not plan.control:
        await _shut_down(lab, leader, follower)
    await lab.conclude()


async def _shut_down(lab: ReplicationLab, leader: BrokerNode, follower: BrokerNode) -> None:
    """The leader has dropped the follower by then, and comes back."""
    async with lab.tasks.scope("the cut") as scope:
        dropped = lab.tasks.flag("the follower is out of the ISR")
        scope.spawn(cut_link(lab, leader, follower, dropped), "leader and follower")
        await lab.until(lambda: follower not in lab.isr, f"an ISR without {follower.actor}")
        dropped.raise_()
    await leave(lab, leader)
    await lab.until(lambda: lab.leader not in (None, leader), "another leader")
    await restart(lab, leader)


def _isr(lab: ReplicationLab) -> set[int]:
    """Of the other topic."""
    state = lab.state_of(OTHER, 0)
    return set() if state is None else set(state.isr)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The other partition is elected once more for nothing."""
    again = not plan.control and not plan.switch("remainder_only")
    return usual_of(plan, needless_election=Outcome.VIOLATED if again else Outcome.CLEAN)


def demands(plan: Plan) -> None:
    has_three_replicas(plan)
    if plan.number("min_isr") > 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because one replica is to be enough for a while")
    if plan.number("lag_ms") < LEAST_LAG_MS:
        raise PlanError(
            f"lag_ms={plan.number('lag_ms')}: must be at least {LEAST_LAG_MS}, so that ISRs change only when a link is "
            "cut"
        )
    if plan.text("isr_writer") != IsrWriter.LEADER:
        raise PlanError(
            f"isr_writer={plan.text('isr_writer')}: must be {IsrWriter.LEADER.value}, because a controller knows what "
            "it has written itself"
        )


SCENARIO = Scenario(
    name="elected-again",
    subject=REPLICATED,
    summary="one state of a batch was refused, and leaders are elected for the whole batch again",
    parameters=(
        Parameter("remainder_only", False, "", "the cure: only what was refused is elected again"),
        *with_default(COMMON, brokers=4, min_isr=1, isr_writer=IsrWriter.LEADER.value, pause_us=20_000),
    ),
    script=elected_again,
    expects=expects,
    demands=demands,
    real=only_ours("it cuts or slows links, which the lab can do only between its own brokers"),
)
