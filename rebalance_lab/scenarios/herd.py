"""The herd (claims Z7a, Z7b, Z7c): one member comes or goes, and every member stops and reads
everything.

A group of `members` settles. Then come these changes, each at rest: a member joins, the same one leaves,
another joins and is killed, a broker without partitions comes, and goes. The notifications, rebalances
and ZooKeeper operations of each change are compared with the formulas (`checks.change_costs`). In the
control nothing changes.

Fetchers take 100 ms to stop: in 0.8.2 a fetch waits that long for data on an idle topic
(`fetch.wait.max.ms`), and a rebalance waits for the fetch before it releases. A member that was not
fetching claims sooner and meets the owner's znode; `conflict_cost` judges what that adds. With
`fetcher_stop_ms=0` claims hardly ever meet.

In live trials members share processes (`per_process`); the one that is killed has its own. The budget of
retries is set explicitly, because with many members a round takes longer than the default budget.

With `--set multi_read=true` every member reads all registrations with one multi-read. That saves
requests and time, not reads: the server still looks up each znode.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.cluster import add_broker, remove_broker
from rebalance_lab.faults.join import join
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.history.rebalances import ChangeKind
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from zkconsumer.lab_settings import Cures, LabSettings


async def herd(lab: GroupLab) -> None:
    members, per_process = lab.plan.number("members"), lab.plan.number("per_process")
    await lab.prepare()
    lab.phase("joining")
    cure = LabSettings(cures=Cures(multi_read=lab.plan.switch("multi_read")))
    started = [
        await lab.start_member(MemberOptions(lab=cure, shares_process=f"p{number // per_process + 1}"), wait=False)
        for number in range(members)
    ]
    for member in started:
        await lab.first_rebalance(member)
    await lab.rest("joined")

    if lab.plan.control:
        lab.phase("control")
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        await changes(lab, members, cure)
    await lab.rest("recovered")
    await lab.close()


async def changes(lab: GroupLab, members: int, cure: LabSettings) -> None:
    """Every kind of change once. The group is at rest before each."""
    lab.phase("one joins", change=ChangeKind.JOIN, members=members)
    comer = await join(lab, MemberOptions(lab=cure))
    await lab.rest("one joined")
    lab.phase("it leaves", change=ChangeKind.LEAVE, members=members + 1)
    await leave(lab, comer)
    await lab.rest("it left")
    lab.phase("another joins", change=ChangeKind.JOIN, members=members)
    # This id sorts before all others, so the member owns something, however many there are.
    victim = await join(lab, MemberOptions(consumer_id="0", lab=cure))
    await lab.rest("another joined")
    lab.phase("it is killed", change=ChangeKind.CRASH, members=members + 1)
    await kill(lab, victim)
    await lab.rest("its session ended")
    broker = lab.plan.number("brokers")
    lab.phase("a broker comes", change=ChangeKind.BROKER, members=members)
    await add_broker(lab, broker)
    await lab.rest("a broker came")
    lab.phase("it goes", change=ChangeKind.BROKER, members=members)
    await remove_broker(lab, broker)
    await lab.rest("it went")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Changes cost a lot, and nothing stays wrong. Without a broker no member owns anything."""
    if plan.number("brokers") == 0:
        return usual(omission=Outcome.VIOLATED, unowned_window=Outcome.VIOLATED)
    return usual()


SCENARIO = Scenario(
    name="herd",
    subject=ZK_GROUP,
    summary="one member or broker comes or goes, and every member stops and reads everything again",
    claims=("Z7a", "Z7b", "Z7c"),
    parameters=(
        *common_parameters(
            least_brokers=0,
            members=8,
            rebalance_max_retries=20,
            work_period_ms=1000,
            fetcher_stop_ms=100,
            rest_timeout_ms=120_000,
            together=True,
        ),
        Parameter("per_process", 25, "members", "members that share an OS process and start together", 1),
        Parameter("multi_read", False, "", "members read each other's registrations with one request"),
    ),
    script=herd,
    expects=expects,
)
