"""The truncation ladder: schedules that rules of replication do not survive (docs/truncation.md).

The controller has no replica. `schedule` says what happens:

- `cut-off`: the link between the two followers is cut, the client stands still, and the leader dies. One follower
  leads, and the other hears of it, but cannot reach it. Up to 0.10 it cuts its log at its high watermark at once, below
  what is committed. Then the leader dies as well, and the other leads. All was in sync, so nothing may be lost.
- `alone`: the leader and a follower are cut off from each other, so that the leader writes what the follower does not
  get, and dies. The follower leads alone, writes as well, and dies. The former leader returns and is elected, though it
  is not in the ISR, so that what the follower has written is lost by permission. But once the follower is back, their
  logs must be the same. Up to 1.1 the leader's answer is where its own epoch begins, and the follower keeps what stands
  below (KAFKA-6361).
- `late-order`: a follower hears late of a leader that leads no more. The leader hands over to the preferred replica,
  which lacks the last record, because the link between them is cut; the follower has it. The follower's link to the
  controller is slow, so it hears nothing yet. The preferred replica is cut off from ZooKeeper, loses its session and
  leads on for itself; the former leader is elected again. If it does not fence, it counts what the follower fetches in
  an older epoch, and acknowledges the record. Then the follower hears of the preferred replica, follows it, and cuts
  the record off. The leader dies, and the follower leads. Up to the first try of KIP-320 the record is lost. The client
  is idempotent, so that it is told of the record that is there, and does not write another; it does not reach the
  preferred replica.
- `missed-epoch`: a leader misses a leader epoch. It hands over in the same way, but is cut off from the controller, and
  hears nothing of it. The follower hears of it, and cuts off a record of which the leader knows that it had it. The
  preferred replica loses its session, and the former leader is elected again. Before it hears of either, another broker
  becomes the controller, the leader itself; the orders of the controller before are lost with that one. Now it hears
  that it leads, and seems to have led all the time: it keeps what it knew of its followers, and acknowledges the
  record. Then it dies, and the follower, which did not reach it, leads. KIP-320 as Kafka has it loses the record. The
  cure, `forget`: a leader that has missed an epoch forgets what it knew.

In the control nothing fails.
"""

from __future__ import annotations

from typing import Any

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.cut import cut
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link, slow_link
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.faults.silence import latest_end_ms
from rebalance_lab.kernel import Flag, RandomStream, Scope
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    with_default,
)
from rebalance_lab.trials.lab import AnyNode
from rebalance_lab.trials.plan import Parameter, Plan, PlanError, value_text
from rebalance_lab.trials.scenario import Scenario, only_ours

CUT_OFF, ALONE, LATE_ORDER, MISSED_EPOCH = "cut-off", "alone", "late-order", "missed-epoch"

#: The rules that a schedule refutes.
REFUTED = {
    CUT_OFF: (ReplicationRules.HIGH_WATERMARK,),
    ALONE: (ReplicationRules.HIGH_WATERMARK, ReplicationRules.KIP_101),
    LATE_ORDER: tuple(each for each in ReplicationRules if not each.fences),
}

#: How often brokers write their high watermarks down. A broker that is killed returns with one that is so old, and cuts
#: by it up to 0.10.
CHECKPOINT_MS = 50

#: schedule=cut-off: how long a fetch waits for the next record. Until then a follower does not hear that the last one
#: is committed, and the client writes no more.
WAIT_MS = 20_000

#: A cut lasts so much longer than the session of a leader that dies while it begins.
MARGIN_MS = 1000

#: The first fault comes within this time after the acknowledgement that it waits for.
FAULT_WITHIN_US = 60_000


async def truncation(lab: ReplicationLab) -> None:
    plan = lab.plan
    draws = RandomStream(plan.seed, "runner", "faults")
    schedule = plan.text("schedule")
    waits: dict[str, Any] = {"replica_fetch_wait_max_ms": WAIT_MS} if schedule == CUT_OFF else {}
    await lab.assemble(
        spare_controller=True,
        proxied=schedule in (LATE_ORDER, MISSED_EPOCH),
        replica_high_watermark_checkpoint_interval_ms=CHECKPOINT_MS,
        lab_forgets_followers=plan.switch("forget"),
        **waits,
    )
    client = lab.start("c1", ProducerOptions())
    lab.phase("control" if plan.control else schedule)
    if not plan.control:
        await lab.written(plan.number("messages") // 4)
        await lab.tasks.sleep(draws.below(FAULT_WITHIN_US))
        await _SCHEDULES[schedule](lab, client)
    await lab.conclude()


async def _cut_off(lab: ReplicationLab, client: AnyNode) -> None:
    leader, (heir, other) = await lab.leader_and_followers()
    apart, over = (lab.tasks.flag(each) for each in ("the cut", "the other leads"))
    async with lab.tasks.scope("cut") as scope:
        scope.spawn(cut_link(lab, heir, other, over, in_place=apart), "the two followers")
        await apart.wait()
        awake = await _stands_still(lab, scope, client)
        # The followers have its last record, and do not know yet that it is committed.
        await _die(lab, leader)
        await lab.following(other, heir)
        await _die(lab, heir)
        over.raise_()
        awake.raise_()
    for each in (leader, heir):
        await restart(lab, each)


async def _stands_still(lab: ReplicationLab, scope: Scope, client: AnyNode) -> Flag:
    """Pause the client when all that it has written is acknowledged. Returns the flag that ends the pause.

    With a record that nobody has acknowledged, the followers may learn that the one before it is committed. Then the
    pause ends, and begins anew."""
    while True:
        await lab.written(lab.acknowledged + 1)
        still, awake = (lab.tasks.flag(f"the client {each}") for each in ("stands still", "goes on"))
        paused = scope.spawn(pause(lab, client, awake, still), "the client")
        await still.wait()
        if not lab.write_under_way():
            return awake
        awake.raise_()
        await paused  # a container takes time to go on, and none can be paused twice


async def _alone(lab: ReplicationLab, _client: AnyNode) -> None:
    first, (second, *others) = await lab.leader_and_followers()
    for each in others:
        await _die(lab, each)
    await lab.in_sync(2)
    await lab.written(lab.acknowledged + 2)  # which needs a fetch of the follower: it has heard of the new epoch
    apart = lab.tasks.flag("the follower does not reach the leader")
    async with lab.tasks.scope("cut") as scope:
        cut_off = cut_link(lab, first, second, lab.plan.number("cut_ms"), in_place=apart)
        scope.spawn(cut_off, "the leader and the follower")
        await apart.wait()
        await _written_unseen(lab, first, second)
        await _die(lab, first)
    await lab.written(lab.acknowledged + lab.plan.number("alone"))
    await kill(lab, second)
    await lab.leaderless()
    await restart(lab, first)
    await lab.led()
    await lab.written(lab.acknowledged + 1)
    for each in (second, *others):
        await restart(lab, each)


async def _late_order(lab: ReplicationLab, client: AnyNode) -> None:
    preferred, leader, follower, controller = await _leave_the_second_to_lead(lab)
    way_ms = lab.plan.number("way_ms")
    over = lab.tasks.flag("the follower leads")
    async with lab.tasks.scope("faults") as scope:
        scope.spawn(cut_link(lab, client, preferred, over), "the client and the preferred replica")
        slow = slow_link(lab, controller, follower, over, there_ms=way_ms, back_ms=0)
        scope.spawn(slow, "the controller and the follower")
        healed = await _written_behind_a_cut(lab, scope, leader, preferred)
        await lab.prefer()
        await lab.elected(preferred)
        scope.spawn(cut(lab, preferred, over), "the preferred replica and ZooKeeper")
        await lab.unregistered(preferred)
        await lab.elected(leader)
        cuts = lab.cuts(follower)
        await lab.following(follower, preferred)
        await lab.truncated(follower, cuts + 1)
        await _die(lab, leader)
        over.raise_()
        healed.raise_()
    await restart(lab, leader)


async def _missed_epoch(lab: ReplicationLab, _client: AnyNode) -> None:
    preferred, leader, follower, controller = await _leave_the_second_to_lead(lab)
    over = lab.tasks.flag("the follower leads")
    async with lab.tasks.scope("faults") as scope:
        healed = await _written_behind_a_cut(lab, scope, leader, preferred)
        unheard = lab.tasks.flag("the controller does not reach the leader")
        scope.spawn(cut_link(lab, leader, controller, over, in_place=unheard), "the leader and the controller")
        await unheard.wait()
        acknowledged, cuts = lab.acknowledged, lab.cuts(follower)
        await lab.prefer()
        await lab.elected(preferred)
        await lab.following(follower, preferred)
        await lab.truncated(follower, cuts + 1)
        scope.spawn(cut(lab, preferred, over), "the preferred replica and ZooKeeper")
        await lab.unregistered(preferred)
        await lab.following(follower, leader)
        apart = lab.tasks.flag("the follower does not reach the leader")
        scope.spawn(cut_link(lab, leader, follower, over, in_place=apart), "the leader and the follower")
        await apart.wait()
        await lab.move_controller(leader)  # with the controller go its orders to the leader
        await lab.elected(leader)
        if not lab.plan.switch("forget"):
            await lab.written(acknowledged + 1)
        await _die(lab, leader)
        over.raise_()
        healed.raise_()
    await restart(lab, leader)


async def _leave_the_second_to_lead(lab: ReplicationLab) -> tuple[BrokerNode, BrokerNode, BrokerNode, BrokerNode]:
    """Let the first of the assignment bounce, so that the second leads, and all are in sync. Returns all three, and the
    controller, which has no replica."""
    preferred, (leader, follower) = await lab.leader_and_followers()
    await _die(lab, preferred)
    await restart(lab, preferred)
    await lab.in_sync()
    await lab.written(lab.acknowledged + 2)  # which needs fetches of all: a follower joins before it has caught up
    (controller,) = (each for each in lab.brokers if each not in (preferred, leader, follower))
    await lab.move_controller(controller)  # on a slow machine it may have lost its session
    return preferred, leader, follower, controller


async def _written_behind_a_cut(lab: ReplicationLab, scope: Scope, leader: BrokerNode, preferred: BrokerNode) -> Flag:
    """Cut the leader off from the preferred replica, and have it write what that one does not get. Returns the flag
    that ends the cut.

    A record that was on its way when the cut began may be there already. An idempotent client writes no other before
    that one is acknowledged: then the cut ends, until it is, and begins anew."""
    while True:
        healed = lab.tasks.flag("the preferred replica reaches the leader again")
        unseen = lab.tasks.flag("the preferred replica does not reach the leader")
        cut_off = cut_link(lab, leader, preferred, healed, in_place=unseen)
        scope.spawn(cut_off, "the leader and the preferred replica")
        await unseen.wait()
        if await _written_unseen(lab, leader, preferred):
            return healed
        healed.raise_()
        await lab.written(lab.acknowledged + 1)


async def _written_unseen(lab: ReplicationLab, leader: BrokerNode, follower: BrokerNode) -> bool:
    """Wait until a leader has written what a follower does not get, from which it has just been cut off. False: an
    idempotent client has given up an attempt, and sends the same record again."""
    cut_us = lab.cut_us(leader, follower)
    while not (written := await lab.appended_since(leader, cut_us)):
        if lab.plan.switch("idempotent"):
            break
    return written


#: schedule -> what happens.
_SCHEDULES = {CUT_OFF: _cut_off, ALONE: _alone, LATE_ORDER: _late_order, MISSED_EPOCH: _missed_epoch}


async def _die(lab: ReplicationLab, broker: BrokerNode) -> None:
    await kill(lab, broker)
    await lab.unregistered(broker)
    await lab.until(lambda: lab.leader not in (None, broker), f"another leader than {broker.actor}")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Each schedule refutes the rules that it was made for and those before them, and no later ones."""
    schedule = plan.text("schedule")
    if plan.control:
        return usual_of(plan)
    falls = not plan.switch("forget") if schedule == MISSED_EPOCH else plan.rules in REFUTED[schedule]
    refuted = Outcome.VIOLATED if falls else Outcome.CLEAN
    if schedule in {CUT_OFF, LATE_ORDER} and plan.rules == ReplicationRules.HIGH_WATERMARK:
        # The replicas may differ as well. A follower that follows the same leader again does not cut. A dead leader
        # that is back only after its successor has written on finds its end within the log, and keeps what is lost.
        return usual_of(plan, lost_write=refuted, leader_completeness=refuted, replica_divergence=None)
    if schedule == MISSED_EPOCH:  # only here a record is committed after a replica in sync has cut it off
        return usual_of(
            plan,
            lost_write=refuted,
            leader_completeness=refuted,
            ahead_of_isr=refuted,
            ahead_of_assumed_isr=refuted,
        )
    if schedule == LATE_ORDER:  # the follower cuts off what the leader that lives has committed with it
        return usual_of(plan, lost_write=refuted, leader_completeness=refuted, ahead_of_assumed_isr=refuted)
    if schedule == CUT_OFF:
        return usual_of(plan, lost_write=refuted, leader_completeness=refuted)
    lost = Outcome.VIOLATED
    return usual_of(plan, replica_divergence=refuted, lost_write=lost, leader_completeness=lost)


def demands(plan: Plan) -> None:
    schedule = plan.text("schedule")
    has_three_replicas(plan)
    if plan.switch("unclean") != (schedule == ALONE):
        alone = schedule == ALONE
        why = "true, because one from outside the ISR is to lead" if alone else "false, because none of these may lead"
        raise PlanError(f"unclean={value_text(plan.switch('unclean'))}: must be {why}")
    if plan.switch("forget") and schedule != MISSED_EPOCH:
        raise PlanError(f"forget=true: only with schedule={MISSED_EPOCH}, in which a leader misses an epoch")
    {CUT_OFF: _demands_of_cut_off, ALONE: _demands_of_alone, LATE_ORDER: _demands_of_late_order}.get(
        schedule, _demands_of_missed_epoch
    )(plan)


def _demands_of_cut_off(plan: Plan) -> None:
    if 2 * latest_end_ms(plan) > WAIT_MS:
        raise PlanError(
            f"session_timeout_ms={plan.number('session_timeout_ms')}: too long, because the leader must be gone before "
            f"fetches end that wait for {WAIT_MS} ms"
        )


def _demands_of_alone(plan: Plan) -> None:
    if plan.number("min_isr") != 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1, because a leader is to write alone")
    _outlasts_a_session(plan)
    left = plan.number("messages") * 3 // 4 - plan.number("alone")
    if left * plan.number("pause_us") <= plan.number("cut_ms") * 1000:
        raise PlanError(
            f"messages={plan.number('messages')}: too few, because the client must still write after the cut of "
            f"{plan.number('cut_ms')} ms"
        )


def _outlasts_a_session(plan: Plan) -> None:
    least_ms = latest_end_ms(plan) + MARGIN_MS
    if plan.number("cut_ms") <= least_ms:
        raise PlanError(
            f"cut_ms={plan.number('cut_ms')}: must be above {least_ms}, the time until a dead leader is gone"
        )


def _demands_of_late_order(plan: Plan) -> None:
    if not plan.switch("idempotent"):
        raise PlanError("idempotent=false: must be true, so that the client hears of the record that is committed")
    least_ms = latest_end_ms(plan) + 2 * plan.number("request_timeout_ms") + MARGIN_MS
    if plan.number("way_ms") < least_ms:
        raise PlanError(
            f"way_ms={plan.number('way_ms')}: must be {least_ms} at least, so that the former leader is elected, and "
            "the client has found it, before the follower hears of another"
        )


def _demands_of_missed_epoch(plan: Plan) -> None:
    if plan.rules != ReplicationRules.KIP_320:
        raise PlanError(f"rules={plan.rules}: must be {ReplicationRules.KIP_320}; {LATE_ORDER} is for the others")
    least_ms = 2 * latest_end_ms(plan) + MARGIN_MS
    if plan.number("request_timeout_ms") < least_ms:
        raise PlanError(
            f"request_timeout_ms={plan.number('request_timeout_ms')}: must be {least_ms} at least, so that the client "
            "waits until the leader has missed the epoch"
        )


SCENARIO = Scenario(
    name="truncation",
    subject=REPLICATED,
    summary="leaders change so that followers of older rules cut their logs at the wrong place",
    parameters=(
        Parameter("schedule", CUT_OFF, "", "what happens to the replicas", choices=tuple(_SCHEDULES)),
        Parameter("cut_ms", 5000, "ms", "schedule=alone: how long the link is cut", 1, maximum=3_600_000),
        Parameter("alone", 20, "", "schedule=alone: records that the follower writes alone", 1, maximum=1_000_000),
        Parameter(
            "way_ms", 10_000, "ms", "schedule=late-order: how long the controller's orders take", 1, maximum=60_000
        ),
        Parameter(
            "forget", False, "", "schedule=missed-epoch: the cure: a leader forgets what it may not know any more"
        ),
        *with_default(COMMON, brokers=4, messages=400, min_isr=1, lag_ms=30_000, pause_us=20_000),
    ),
    script=truncation,
    expects=expects,
    demands=demands,
    real=only_ours("its rule sets are those of the lab's own brokers"),
)
