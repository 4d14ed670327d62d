"""The broker's crash: what it acknowledged survives `kill -9`, and with flush.messages=1 a loss of power.

A client writes numbered records with acks=all, one at a time. The broker is killed several times at a random moment,
and started again once its session has ended, because its id is taken until then, as with Kafka. With `power_loss` its
files also lose what was not synced. In the end the client reads everything. In the control nothing is killed.

A broker that syncs each record leaves a loss of power nothing to take from its log, so one that takes nothing proves
nothing. Therefore the client also writes to a topic whose records are never synced. A loss of power counts only if it
takes bytes of a log; it takes some of that topic nearly every time.
"""

from __future__ import annotations

from rebalance_lab.broker.log.names import LOG
from rebalance_lab.checks.lost_write import BROKER_LOG
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.power_loss import lose_power
from rebalance_lab.faults.restart import restart
from rebalance_lab.kernel import RandomStream
from rebalance_lab.roles.values import LEAST_BYTES
from rebalance_lab.subjects.broker_log.subject import BROKER_ID, ONE_BROKER, BrokerOptions, ClientOptions, LogLab
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario, usual

#: A kill comes within this time after the acknowledgement that it waits for: several writes long.
KILL_WITHIN_US = 20_000

#: The topic that is never synced. A disk keeps all of a file in one draw of four, and here of one in 256.
UNSYNCED, UNSYNCED_PARTITIONS = "unsynced", 4


async def broker_crash(lab: LogLab) -> None:
    plan = lab.plan
    moments = RandomStream(plan.seed, "runner", "kills")
    await lab.connected()
    broker = lab.start("b1", BrokerOptions())
    await lab.until(lambda: broker.started, "the broker's session")
    unsynced = None
    if plan.switch("power_loss"):
        await lab.registered(1)
        await lab.create(
            UNSYNCED, dict.fromkeys(range(UNSYNCED_PARTITIONS), (BROKER_ID,)), flush_messages=str(2**63 - 1)
        )
        unsynced = (UNSYNCED, UNSYNCED_PARTITIONS)
    lab.start("c1", ClientOptions(unsynced=unsynced))
    lab.phase("control" if plan.control else "crashing")
    kills = 0 if plan.control else plan.number("kills")
    for number in range(kills):
        await lab.written((number + 1) * plan.number("messages") // (kills + 1))
        await lab.tasks.sleep(moments.below(KILL_WITHIN_US))
        await kill(lab, broker)
        if plan.switch("power_loss"):
            await lose_power(lab, broker, proven_by=LOG)
        await lab.unregistered(broker)
        await restart(lab, broker)
    await lab.all_read()
    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Without a sync of each record a loss of power may take what was acknowledged."""
    may_lose = not plan.control and plan.switch("power_loss") and plan.number("flush_messages") != 1
    lost = None if may_lose else Outcome.CLEAN
    return usual(BROKER_LOG, lost_write=lost, reordered=lost)


def demands(plan: Plan) -> None:
    if plan.number("kills") >= plan.number("messages"):
        raise PlanError(f"kills={plan.number('kills')}: must be below messages, because writes stand between kills")


SCENARIO = Scenario(
    name="broker-crash",
    subject=ONE_BROKER,
    summary="a broker is killed while a client writes; nothing acknowledged may be lost",
    parameters=(
        Parameter("messages", 300, "", "records that the client writes", 1, maximum=1_000_000),
        Parameter("kills", 2, "times", "how often the broker is killed", 1),
        Parameter("power_loss", False, "", "each kill also loses what was not synced"),
        Parameter("flush_messages", 0, "", "flush.messages: 1 syncs each record; 0 none", 0, maximum=1_000_000),
        Parameter("segment_bytes", 4096, "bytes", "segment.bytes", 512, maximum=1 << 30),
        Parameter("value_bytes", 32, "bytes", "the size of each value", LEAST_BYTES, maximum=1_000_000),
        Parameter("idempotent", False, "", "whether the producer is idempotent: repeated batches are written once"),
        Parameter("pause_us", 1000, "µs", "the client's pause between two writes", 0),
        *WORLD_PARAMETERS.values(),
    ),
    script=broker_crash,
    expects=expects,
    worlds=("simulated", "processes", "containers"),
    demands=demands,
)
