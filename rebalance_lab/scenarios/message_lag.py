"""The lag in messages (KIP-16): bursts of a producer take a follower out of the ISR that has everything a moment later.

The controller has no replica. A producer writes with acks=all, many records at once. Until the follower has fetched a
burst, which takes it a twentieth of the time that it may lag, it lacks all of it. A leader that counts what a follower
lacks (`replica.lag.max.messages` of 0.8) drops the follower if it looks at such a moment. The follower fetches on,
joins again, and is dropped by a later burst. With `min.insync.replicas` of 2 writes are refused each time. The cure is
to count time alone: `lag_messages=0`. In the control the producer writes one record at a time.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.bursts import bursts
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    REPLICATED,
    ProducerOptions,
    ReplicationLab,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario

#: So many fetches, and pauses after an error, fit into the time that a follower may lag. By the defaults of 0.9 they
#: last 500 ms and 1 s, and it may lag for 10 s.
FETCHES, BACKOFFS = 20, 10

#: More than a burst has, so that each fetch lasts as long as it may: then a leader's look meets most bursts.
FETCH_MIN_BYTES = 1 << 30


async def message_lag(lab: ReplicationLab) -> None:
    plan = lab.plan
    records = plan.number("burst")
    lag_ms = plan.number("lag_ms")
    await lab.assemble(
        spare_controller=True,
        replica_fetch_wait_max_ms=lag_ms // FETCHES,
        replica_fetch_min_bytes=FETCH_MIN_BYTES,
        replica_fetch_backoff_ms=lag_ms // BACKOFFS,
    )
    lab.phase("control" if plan.control else "bursts")
    client = lab.start("c1", ProducerOptions(batch=1 if plan.control else records))
    if not plan.control:
        await bursts(lab, client, records, lab.writes_limit_ms)
    await lab.conclude()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """A follower is dropped although it has everything a moment later, if a burst is more than it may lack."""
    if plan.control or not 0 < plan.number("lag_messages") < plan.number("burst"):
        return usual_of(plan)
    return usual_of(plan, early_shrink=Outcome.VIOLATED)


def demands(plan: Plan) -> None:
    spares_a_controller(plan)
    lag_ms = plan.number("lag_ms")
    if lag_ms < FETCHES:
        raise PlanError(f"lag_ms={lag_ms}: must be at least {FETCHES}, so that an idle follower fetches in time")


SCENARIO = Scenario(
    name="message-lag",
    subject=REPLICATED,
    summary="bursts of a producer take a healthy follower out of the ISR, again and again",
    parameters=(
        Parameter("burst", 5, "", "records that the producer writes at once", 2, maximum=10_000),
        *with_default(COMMON, messages=1000, lag_ms=400, lag_messages=4, pause_us=1000),
    ),
    script=message_lag,
    expects=expects,
    demands=demands,
)
