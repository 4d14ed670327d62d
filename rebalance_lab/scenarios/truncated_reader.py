"""The truncated reader: a log is truncated below the position of a reader, and written anew.

A reader reads the partition along. The followers die, and the leader writes on alone. When the reader has read that, it
stands still, and the leader dies. A follower is the first to return, and leads, though it is not in the ISR: its log
ends below the reader's position. The client writes on. `wakes` says when the reader goes on:

- `late`: when the log is longer than its position again. If the reader knows offsets only, it goes on at its position,
  finds records there, and never reads those that were written below.
- `early`: while the log is still shorter, because the client is cut off from the leader after some records. The
  position is out of range, and a reader that knows offsets only goes on where `reset` says: at the end of the log, so
  that it misses what has been written below, or at the beginning of the log, so that it reads everything again.

The cure is `epochs`: a reader that knows leader epochs asks where its last one ended, and goes back to there (KIP-320).
With `unclean=false` the partition waits for the leader, and nothing is truncated. In the control nothing fails.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.model import Outcome
from rebalance_lab.client.consumer import Reset
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.kernel import Flag
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    AlongOptions,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    with_default,
)
from rebalance_lab.trials.lab import AnyNode
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario

LATE, EARLY = "late", "early"

#: wakes=late: so many records are written behind the reader's position before it goes on.
BEYOND = 10

#: wakes=early: so many records are written anew before it goes on.
ANEW = 10


async def truncated_reader(lab: ReplicationLab) -> None:
    plan = lab.plan
    await lab.assemble()
    client = lab.start("c1", ProducerOptions())
    reader = lab.start("c2", AlongOptions(epochs=plan.switch("epochs"), reset=Reset(plan.text("reset"))))
    await lab.written(plan.number("messages") // 4)
    lab.phase("control" if plan.control else "the log is truncated")
    if not plan.control:
        await _truncate(lab, client, reader)
    await lab.read_to_end()
    await lab.conclude()


async def _truncate(lab: ReplicationLab, client: AnyNode, reader: AnyNode) -> None:
    leader, (first, *others) = await lab.leader_and_followers()
    for each in (first, *others):
        await kill(lab, each)
    await lab.in_sync(1)
    await lab.written(lab.acknowledged + lab.plan.number("alone"))
    await lab.read_so_far()
    stands, awake = lab.tasks.flag("the reader stands still"), lab.tasks.flag("the reader goes on")
    async with lab.tasks.scope("pauses") as scope:
        scope.spawn(pause(lab, reader, awake, stands), "the reader")
        await stands.wait()
        await _die(lab, leader)
        await restart(lab, first)
        if not lab.plan.switch("unclean"):
            await restart(lab, leader)
        await lab.led()
        await _WAKES[lab.plan.text("wakes")](lab, client, awake)
    for each in others if not lab.plan.switch("unclean") else (*others, leader):
        await restart(lab, each)


async def _die(lab: ReplicationLab, leader: BrokerNode) -> None:
    await kill(lab, leader)
    await lab.leaderless()


async def _late(lab: ReplicationLab, _client: AnyNode, awake: Flag) -> None:
    await lab.written_beyond_reader(BEYOND)
    awake.raise_()


async def _early(lab: ReplicationLab, client: AnyNode, awake: Flag) -> None:
    await lab.written(lab.acknowledged + ANEW)
    leader = lab.leader
    assert leader is not None, "it has just acknowledged"
    apart, moved = lab.tasks.flag("the client writes no more"), lab.tasks.flag("the reader's position was moved")
    async with lab.tasks.scope("the cut") as scope:
        scope.spawn(cut_link(lab, client, leader, moved, in_place=apart), "the client and the leader")
        await apart.wait()
        awake.raise_()
        await lab.moved()
        moved.raise_()


#: wakes -> what happens until the reader has gone on.
_WAKES = {LATE: _late, EARLY: _early}


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """What the leader wrote alone is lost if one from outside the ISR may lead, and the reader has read it. A reader
    that knows leader epochs misses nothing; one that begins anew misses nothing either. Up to 1.1 the former leader may
    keep what nobody else has (KAFKA-6361)."""
    truncated = plan.switch("unclean") and not plan.control
    if not truncated:
        return usual_of(plan)
    jumps = not plan.switch("epochs") and (plan.text("wakes") == LATE or plan.text("reset") == Reset.LATEST)
    differs = None if plan.rules in (ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101) else Outcome.CLEAN
    return usual_of(
        plan,
        lost_write=Outcome.VIOLATED,
        leader_completeness=Outcome.VIOLATED,
        changed_read=Outcome.VIOLATED,
        poll_skip=Outcome.VIOLATED if jumps else Outcome.CLEAN,
        replica_divergence=differs,
    )


def demands(plan: Plan) -> None:
    if plan.number("brokers") < 2:
        raise PlanError("brokers=1: must be at least 2, because another one is the first to return")
    if plan.number("min_isr") > 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because the leader writes alone")
    if plan.text("wakes") == EARLY and not plan.switch("unclean"):
        raise PlanError("wakes=early: needs unclean=true; else the log is never shorter than the reader's position")
    least = 4 * (2 * plan.number("alone") + BEYOND + ANEW) // 3
    if plan.number("messages") < least:
        raise PlanError(
            f"messages={plan.number('messages')}: must be {least} at least, so that the client still writes when the "
            "reader goes on"
        )


def real(plan: Plan) -> None:
    if plan.text("wakes") == EARLY:
        raise PlanError("wakes=early: no link to a real broker can be cut; set it to late")


SCENARIO = Scenario(
    name="truncated-reader",
    subject=REPLICATED,
    summary="a log is truncated below the position of a reader, and written anew",
    parameters=(
        Parameter("epochs", False, "", "the cure: the reader asks where its last leader epoch ended"),
        Parameter(
            "wakes",
            LATE,
            "",
            "whether the log is longer than its position when the reader goes on",
            choices=(LATE, EARLY),
        ),
        Parameter("reset", Reset.LATEST.value, "", "auto.offset.reset of the reader", choices=tuple(Reset)),
        Parameter("alone", 60, "", "records that the leader writes alone before it dies", 2 * ANEW, maximum=1_000_000),
        *with_default(COMMON, messages=400, min_isr=1, unclean=True, pause_us=20_000),
    ),
    script=truncated_reader,
    expects=expects,
    demands=demands,
    real=real,
)
