"""Soak: a client that others wrote, and brokers that fail again and again.

An idempotent producer with acks=all, of confluent-kafka or kafka-python, writes numbered records for some time, many
at once. Meanwhile brokers fail in rounds as in `committed-data`: killed, paused, cut off from each other and powered
off at random, sparing one replica in sync. Each record is synced, so that losses of power take nothing that was
acknowledged. In the end the library reads everything, and every replica is read; each record is compared with what was
sent.

With `unclean` all brokers die in each round, one after another. The last to die has written alone, and another one
returns first and leads, so that what it lacks is lost and counted. In the control nothing fails.
"""

from __future__ import annotations

from importlib.util import find_spec

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.restart import restart
from rebalance_lab.kernel import RandomStream
from rebalance_lab.scenarios.committed_data import FAULT_WITHIN_US, ROUND, fault_round, spares_one
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    BrokerNode,
    OutsideOptions,
    ReplicationLab,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, only_ours
from rebalance_lab.world.outside.client import LIBRARIES

#: Acknowledged between two rounds, at least.
WRITES_BETWEEN = 50

#: Acknowledged by the last broker alone before it dies, at least. The client may send several records at once, and an
#: answer to what was written before the ISR shrank may come late, so one is not enough.
WRITES_ALONE = 20

#: How long the client may take to deliver its last records and to read all.
READ_LIMIT_MS = 300_000

#: Between two deaths, and two returns, if all brokers die: the ISR may shrink meanwhile, or not.
BETWEEN_US = 4_000_000


async def soak(lab: ReplicationLab) -> None:
    plan = lab.plan
    draws = RandomStream(plan.seed, "runner", "faults")
    await lab.assemble(
        lab_isr_read_back=plan.switch("read_back"), replica_fetch_min_bytes=plan.number("fetch_min_bytes")
    )
    lab.start("c1", OutsideOptions())
    await lab.written(1)
    lab.phase("control" if plan.control else "faults")
    while not (plan.control or lab.writes_no_more):
        await lab.tasks.sleep(draws.below(FAULT_WITHIN_US))
        await (_all_die(lab, draws) if plan.switch("unclean") else fault_round(lab, draws))
        await _recovered(lab)
    await lab.conclude(plan.number("seconds") * 1000 + READ_LIMIT_MS)


async def _recovered(lab: ReplicationLab) -> None:
    """Wait until all are in sync, and have taken further records: what a cut has held back may still be on its way."""
    await lab.in_sync()
    enough = lab.acknowledged + WRITES_BETWEEN
    await lab.until(lambda: lab.acknowledged >= enough or lab.writes_no_more, f"{WRITES_BETWEEN} acknowledgements")
    await lab.in_sync()


async def _all_die(lab: ReplicationLab, draws: RandomStream) -> None:
    *others, last = _shuffled(lab, draws)
    for each in others:
        await kill(lab, each)
        await lab.tasks.sleep(draws.below(BETWEEN_US))
    await _written_alone(lab, last)
    await kill(lab, last)
    await lab.tasks.sleep(draws.below(BETWEEN_US))
    draws.shuffle(others)
    for each in [*others, last]:
        await lab.unregistered(each)
        await restart(lab, each)
        await lab.tasks.sleep(draws.below(BETWEEN_US))


async def _written_alone(lab: ReplicationLab, broker: BrokerNode) -> None:
    """Wait until a broker that is alone in the ISR has had writes acknowledged: nobody else has these."""
    await lab.until(lambda: lab.isr == [broker] or lab.writes_no_more, f"{broker.actor} to be alone in the ISR")
    enough = lab.acknowledged + WRITES_ALONE
    await lab.until(lambda: lab.acknowledged >= enough or lab.writes_no_more, f"{WRITES_ALONE} acknowledgements")


def _shuffled(lab: ReplicationLab, draws: RandomStream) -> list[BrokerNode]:
    brokers = list(lab.brokers)
    draws.shuffle(brokers)
    return brokers


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """As in `committed-data` nothing is lost, nor repeated; with unclean elections both may happen. They come only when
    all are dead, so that no leader counts on replicas which obey another one."""
    older = plan.rules != ReplicationRules.KIP_320
    if older or (plan.switch("unclean") and not plan.control):
        return usual_of(
            plan,
            lost_write=None,
            leader_completeness=None,
            replica_divergence=None,
            ahead_of_assumed_isr=None if older else Outcome.CLEAN,
            duplicate=None,
            reordered=None,
        )
    return usual_of(plan)


def demands(plan: Plan) -> None:
    client = plan.text("client")
    if find_spec(LIBRARIES[client].package) is None:
        raise PlanError(f"client={client} is not installed: pip install {client}")
    if plan.switch("unclean") and plan.number("min_isr") > 1:
        raise PlanError(f"min_isr={plan.number('min_isr')}: must be 1 with unclean=true, because leaders write alone")
    if plan.number("flush_messages") != 1:
        raise PlanError(
            f"flush_messages={plan.number('flush_messages')}: must be 1, because a loss of power takes what is not "
            "synced, acknowledged or not (see committed-data)"
        )
    spares_one(plan)


SCENARIO = Scenario(
    name="soak",
    subject=REPLICATED,
    summary="an idempotent producer of others writes while brokers fail; nothing acknowledged may be lost",
    parameters=(
        Parameter("client", "confluent-kafka", "", "the library that writes and reads", choices=tuple(LIBRARIES)),
        Parameter("seconds", 60, "s", "how long it writes, and brokers fail", 1, maximum=86_400),
        Parameter("read_back", True, "", "lab.isr.read.back; false: as Kafka, where an ISR may stay too small"),
        Parameter(
            "fetch_min_bytes", 1, "bytes", "replica.fetch.min.bytes; more: followers are 0.5 s late", 1, maximum=1 << 20
        ),
        *ROUND,
        *with_default([each for each in COMMON if each.name != "messages"], flush_messages=1, pause_us=10_000),
    ),
    script=soak,
    expects=expects,
    worlds=("processes",),
    demands=demands,
    real=only_ours("its faults include cuts and losses of power, which only the lab's own brokers can suffer"),
)
