"""The blind release (defect S4): a member deletes owner znodes that are no longer its own.

A member is in the middle of a rebalance, its fetchers stopping, when it stands still past its
session. The others take over. It wakes where it was, and goes on with the release: it deletes the
owner znodes by their paths, whoever holds them now. The new owners work on and are not told; the
registry says nobody, and a third can claim the same. It heals when the woken member registers
again. Cure: look at who owns a znode before deleting it (`--set check_owner=true`). In the control
nobody stands still.

Members report work when they begin and when they stop, and every 20 s in between, which is longer than the pause. With
a shorter period a report falls due while the member stands still, and comes when it wakes. `zombie_overlap` cannot tell
whether that report is late, so the trial would be unknown.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.join import join
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.silence import latest_end_ms, pause_keeps_session, pause_outlives_session
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.members import MemberOptions
from rebalance_lab.trials.plan import Parameter, Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual
from rebalance_lab.trials.shares import attempt_ms, retries_end_ms, shares_of


async def blind_release(lab: Lab) -> None:
    checks = {"check.owner.before.delete": "true"} if lab.plan.parameters["check_owner"] else {}
    await lab.prepare()
    lab.phase("joining")
    victim = await lab.start_member(MemberOptions(properties=checks, fetcher_stop_ms=lab.plan.number("stop_ms")))
    await lab.start_members(lab.plan.number("members") - 1)
    await lab.rest("joined")

    lab.phase("control" if lab.plan.control else "paused in a rebalance")
    async with lab.tasks.scope("join and pause") as scope:
        scope.spawn(join(lab), "join")
        if not lab.plan.control:
            await lab.until(lambda: victim.state.running > 0, f"a rebalance of {victim.actor}")
            await lab.sleep_ms(lab.plan.number("stop_ms") // 2)  # its fetchers are stopping
            await pause(lab, victim, lab.plan.number("pause_ms"))

    lab.phase("recovery")
    await lab.rest("recovered")
    await lab.close()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Two members work on what one of them has deleted the other's claim to: surely where it stands still while its
    fetchers stop, after its first reads, and the others have claimed before it can go on (`faults.silence`); and never
    where it keeps its session. Who wants something of it meanwhile may spend all retries before its session ends."""
    if plan.control:
        return usual()
    pause_ms, members = plan.number("pause_ms"), plan.number("members")
    blind: Outcome | None = None
    if plan.parameters["check_owner"] or pause_keeps_session(plan, pause_ms):
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
    """Whether its fetchers are stopping when it is paused: it has made the reads that come before."""
    return attempt_ms(plan, members=plan.number("members") + 1) <= plan.number("stop_ms") // 2


SCENARIO = register(
    Scenario(
        name="blind-release",
        summary="a member wakes in the middle of a release, and deletes what others own by now",
        claims=(),
        parameters=(
            *common_parameters(work_period_ms=20_000),
            Parameter("stop_ms", 500, "ms", "how long the first member's fetchers take to stop", 1),
            Parameter("pause_ms", 5000, "ms", "how long it stands still", 1),
            Parameter("check_owner", False, "", "it looks at who owns a znode before it deletes it"),
        ),
        script=blind_release,
        expects=expects,
    )
)
