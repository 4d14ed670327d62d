"""Committed data: brokers are killed, paused, cut off and powered off at random, sparing one replica that is in sync.

A client writes numbered records with acks=all, one at a time. In each round some brokers suffer a fault at a random
moment: after the acknowledgement of a share of the writes, a replica that is in sync according to ZooKeeper is chosen
to be spared, and the victims are drawn from the others. Once all are back and in sync, the next round begins. In the
end the client reads everything, and every replica is read. With `reader` another client reads along, which knows leader
epochs (KIP-320): what it has read must stay. In the control nothing fails.

By default records are not synced (`flush_messages=0`, as in Kafka), so a loss of power may lose records that were
acknowledged, and both outcomes are expected. With `flush_messages=1` nothing that was acknowledged may be lost.
"""

from __future__ import annotations

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.model import Outcome
from rebalance_lab.client.consumer import Reset
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.link import cut_link
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.power_loss import lose_power, perhaps_lose_power
from rebalance_lab.faults.restart import restart
from rebalance_lab.kernel import RandomStream
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    AlongOptions,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario

#: A fault comes within this time after the acknowledgement that it waits for: several writes long.
FAULT_WITHIN_US = 60_000

FAULTS = ("kill", "pause", "cut", "power-loss")
ANY = "any"

#: A kill after which the disk may also have lost what was not synced. Unlike a power loss that a plan asks for, it need
#: not lose anything.
KILL_OR_POWER_LOSS = "kill, perhaps power loss"

#: Of these a victim's fault is drawn.
DRAWN = ("kill", "pause", "cut", KILL_OR_POWER_LOSS)


#: What `fault_round` needs.
ROUND = (
    Parameter("victims", 1, "brokers", "how many fail in a round", 1),
    Parameter("fault", ANY, "", "which fault; any: drawn for each victim", choices=(ANY, *FAULTS)),
    Parameter("fault_ms", 3000, "ms", "how long a pause or a cut lasts", 1, maximum=3_600_000),
)


async def committed_data(lab: ReplicationLab) -> None:
    plan = lab.plan
    draws = RandomStream(plan.seed, "runner", "faults")
    await lab.assemble()
    lab.start("c1", ProducerOptions())
    if plan.switch("reader"):
        lab.start("c2", AlongOptions(epochs=True, reset=Reset.LATEST))
    lab.phase("control" if plan.control else "faults")
    rounds = 0 if plan.control else plan.number("rounds")
    for number in range(rounds):
        await lab.written((number + 1) * plan.number("messages") // (rounds + 1))
        await lab.tasks.sleep(draws.below(FAULT_WITHIN_US))
        await fault_round(lab, draws)
        await lab.in_sync()
    if plan.switch("reader"):
        await lab.read_to_end()
    await lab.conclude()


async def fault_round(lab: ReplicationLab, draws: RandomStream) -> None:
    """Let so many brokers fail at once as the plan says (`victims`, `fault`, `fault_ms`), sparing one in sync, until
    all are back."""
    spared = lab.isr[draws.below(len(lab.isr))]
    others = [each for each in lab.brokers if each is not spared]
    victims = [others.pop(draws.below(len(others))) for _ in range(lab.plan.number("victims"))]
    wanted = lab.plan.text("fault")
    cut: set[frozenset[str]] = set()
    async with lab.tasks.scope("faults") as scope:
        for victim in victims:
            fault = DRAWN[draws.below(len(DRAWN))] if wanted == ANY else wanted
            delay_us = draws.below(FAULT_WITHIN_US)
            scope.spawn(_suffer(lab, victim, fault, delay_us, cut), f"{fault} of {victim.actor}")


async def _suffer(lab: ReplicationLab, victim: BrokerNode, fault: str, delay_us: int, cut: set[frozenset[str]]) -> None:
    """`cut`: the links that this round has cut, by the names of both brokers. Two victims may share one."""
    duration_ms = lab.plan.number("fault_ms")
    await lab.tasks.sleep(delay_us)
    if fault == "pause":
        await pause(lab, victim, duration_ms)
    elif fault == "cut":
        links = {frozenset({victim.actor, each.actor}): each for each in _peers(lab, victim)}
        async with lab.tasks.scope("cuts") as scope:
            for each in (each for link, each in links.items() if link not in cut):
                scope.spawn(cut_link(lab, victim, each, duration_ms), f"{victim.actor} and {each.actor}")
            cut |= links.keys()
    else:
        await kill(lab, victim)
        if fault == "power-loss":
            await lose_power(lab, victim)
        elif fault == KILL_OR_POWER_LOSS:
            await perhaps_lose_power(lab, victim)
        await lab.unregistered(victim)
        await restart(lab, victim)


def _peers(lab: ReplicationLab, victim: BrokerNode) -> list[BrokerNode]:
    """The brokers with which it replicates: a follower with the leader, the leader with all. Others it does not talk
    to, so that a cut would have no effect."""
    others = [each for each in lab.brokers if each is not victim]
    return others if lab.leader is None or lab.leader is victim else [each for each in others if each is lab.leader]


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """The rules of KIP-320 lose nothing, unless a broker loses its power with records that it has not synced; the older
    rules may lose records anyway. A broker that comes back without its records leads again if it is the last of the ISR
    (KIP-966), or if the controller has failed with it and its successor does not know that it was gone. If it does not,
    another leads and counts on it. A leader that is cut off may be told late of another ISR. A follower that returns
    joins once it has passed the high watermark. If the leader looks before it has caught up as well, the leader drops
    it again (KAFKA-19996): so in 2 of 1,000 trials. Where records may be lost, or replicas differ, a reader may have
    read them, and another record may stand where it has been."""
    late = None if plan.text("fault") in {ANY, "cut"} and not plan.control else Outcome.CLEAN
    early = Outcome.CLEAN if plan.control else None
    if plan.rules != ReplicationRules.KIP_320:
        return usual_of(
            plan,
            lost_write=None,
            leader_completeness=None,
            replica_divergence=None,
            changed_read=None,
            poll_skip=None,
            ahead_of_assumed_isr=None,
            frozen_isr=late,
            early_shrink=early,
        )
    forgets = plan.text("fault") in {ANY, "power-loss"} and plan.number("flush_messages") != 1
    lost = None if forgets and not plan.control else Outcome.CLEAN
    return usual_of(
        plan,
        lost_write=lost,
        leader_completeness=lost,
        changed_read=lost,
        poll_skip=lost,
        ahead_of_assumed_isr=lost,
        frozen_isr=late,
        early_shrink=early,
    )


def demands(plan: Plan) -> None:
    spares_one(plan)
    if plan.number("rounds") >= plan.number("messages"):
        raise PlanError(f"rounds={plan.number('rounds')}: must be below messages, because writes stand between faults")


def spares_one(plan: Plan) -> None:
    """Raises PlanError if a round would spare no broker."""
    if plan.number("victims") >= plan.number("brokers"):
        raise PlanError(f"victims={plan.number('victims')}: must be below brokers, because one is spared")


def real(plan: Plan) -> None:
    if plan.text("fault") not in {"kill", "pause"}:
        raise PlanError(
            f"fault={plan.text('fault')}: real brokers can only be killed or paused; set it to kill or pause"
        )


SCENARIO = Scenario(
    name="committed-data",
    subject=REPLICATED,
    summary="brokers fail at random, one in-sync replica is spared; synced records are not lost",
    parameters=(
        Parameter("rounds", 3, "times", "how often brokers fail", 1),
        Parameter("reader", False, "", "whether another client reads along"),
        *ROUND,
        *COMMON,
    ),
    script=committed_data,
    expects=expects,
    claims=("E6",),
    demands=demands,
    real=real,
)
