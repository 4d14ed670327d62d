"""The blind release (defect S4): a member deletes owner znodes that belong to others by now.

A member is paused past its session in the middle of a rebalance, while its fetchers stop. The others
take over. When the member wakes it goes on with its release: it deletes owner znodes by their paths,
whoever owns them now. The new owners keep working and are not notified. The registry shows no owner, and
a third member can claim the same partitions. This heals when the woken member registers again. Cure:
look at the owner before deleting a znode (`--set check_owner=true`). In the control no member is paused.

Members report work when they begin, when they stop, and every 20 s, which is longer than the pause. With
a shorter period a report would fall due during the pause and come when the member wakes.
`zombie_overlap` cannot know whether such a report is late, so the trial would be unknown.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.silence import latest_end_ms, pause_keeps_session, pause_outlives_session
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.shares import attempt_ms, retries_end_ms, shares_of
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from zkconsumer.lab_settings import Cures, LabSettings


async def blind_release(lab: GroupLab) -> None:
    checks = LabSettings(cures=Cures(check_owner_before_delete=lab.plan.switch("check_owner")))
    victim, *_ = await lab.assemble(MemberOptions(lab=checks, fetcher_stop_ms=lab.plan.number("stop_ms")))

    lab.phase("control" if lab.plan.control else "paused in a rebalance")
    async with lab.tasks.scope("join and pause") as scope:
        scope.spawn(join(lab), "join")
        if not lab.plan.control:
            await lab.until(lambda: victim.state.running > 0, f"a rebalance of {victim.actor}")
            await lab.sleep_ms(lab.plan.number("stop_ms") // 2)  # its fetchers are stopping
            await pause(lab, victim, lab.plan.number("pause_ms"))

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Two members work on a partition after one of them has deleted the other's claim to it. This is certain if the
    member is paused while its fetchers stop, after its first reads, and the others have claimed before it goes on
    (`faults.silence`). It never happens if the member keeps its session. Members that want its partitions may use up
    their retries before its session ends."""
    if plan.control:
        return usual()
    pause_ms, members = plan.number("pause_ms"), plan.number("members")
    blind: Outcome | None = None
    if plan.switch("check_owner") or pause_keeps_session(plan, pause_ms):
        blind = Outcome.CLEAN
    elif stops_by_then(plan) and pause_outlives_session(
        plan, pause_ms - 2 * attempt_ms(plan, members=members + 1), reported=False
    ):
        blind = Outcome.VIOLATED
    kept = shares_of(plan, members=members)[0] <= shares_of(plan, members=members + 1)[0]
    through = Outcome.CLEAN if kept or retries_end_ms(plan) > latest_end_ms(plan) else None
    lasting = Outcome.CLEAN if kept or retries_end_ms(plan) > plan.number("stop_ms") else None
    return usual(
        non_convergence=through,
        omission=lasting,
        stays_wrong=lasting,
        belief_overlap=None,
        effect_overlap=None,
        zombie_overlap=None,
        disagreement=None,
        registration=blind,
        unowned_window=None,
    )


def stops_by_then(plan: Plan) -> bool:
    """Whether the member is stopping its fetchers when it is paused, that is, has made the reads that come first."""
    return attempt_ms(plan, members=plan.number("members") + 1) <= plan.number("stop_ms") // 2


SCENARIO = Scenario(
    name="blind-release",
    subject=ZK_GROUP,
    summary="a member wakes in the middle of a release and deletes owner znodes that others hold by now",
    parameters=(
        *common_parameters(work_period_ms=20_000),
        Parameter("stop_ms", 500, "ms", "how long the first member's fetchers take to stop", 1),
        Parameter("pause_ms", 5000, "ms", "how long the first member is paused", 1),
        Parameter("check_owner", False, "", "a member checks the owner of a znode before it deletes it"),
    ),
    script=blind_release,
    expects=expects,
)
