"""The cut: a member loses its connection to ZooKeeper for a while, and keeps working (defect S2).

Messages between the first member and the servers are lost, both ways or one way (`--set way=to_server`,
`to_client`). Once its session has ended, its znodes are deleted and the others take over. The member
knows that it is disconnected, but keeps fetching, as 0.8 does. It learns that its session has expired
when the cut ends. A cut of up to a tenth of the session does no harm. A longer one may: TCP retransmits
what was lost only some time after the cut, and the member may have given up its connection by then. In
the control nothing is cut.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.cut import cut
from rebalance_lab.faults.silence import cut_keeps_session, cut_outlives_session
from rebalance_lab.subjects.zk_group.lab import GroupLab, MemberOptions
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan
from rebalance_lab.trials.scenario import Scenario, usual

WAYS = {"both": (True, True), "to_server": (True, False), "to_client": (False, True)}


async def cut_off(lab: GroupLab) -> None:
    to_server, to_client = WAYS[lab.plan.text("way")]
    cut_ms = lab.plan.number("cut_ms")
    victim, *_ = await lab.assemble(MemberOptions(proxied=True))

    lab.phase("control" if lab.plan.control else "cut")
    if lab.plan.control:
        await lab.sleep_ms(cut_ms)
    else:
        await cut(lab, victim, cut_ms, to_server=to_server, to_client=to_client)

    await lab.recover()


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """There are two owners once the session has ended and the others have taken over, as the member learns nothing
    before the cut ends (`faults.silence`). There is no overlap if no ping comes too late. In between both may happen,
    and the member may also register anew while the others still handle its session's end, and so deal from another
    list. The registry is never wrong."""
    cut_ms, (to_server, _) = plan.number("cut_ms"), WAYS[plan.text("way")]
    if plan.control or cut_keeps_session(plan, cut_ms):
        return usual()
    sure = plan.number("members") > 1 and cut_outlives_session(plan, cut_ms, to_server=to_server)
    overlap = Outcome.VIOLATED if sure else None
    return usual(
        belief_overlap=overlap,
        effect_overlap=overlap,
        zombie_overlap=overlap,
        disagreement=None if overlap is None else Outcome.CLEAN,
        unowned_window=None,
    )


SCENARIO = Scenario(
    name="cut",
    subject=ZK_GROUP,
    summary="a member is cut off from ZooKeeper for longer than its session, and works beside its successor",
    parameters=(
        *common_parameters(),
        Parameter("cut_ms", 8000, "ms", "how long the first member is cut off", 1),
        Parameter("way", "both", "", "the direction in which messages are lost", choices=tuple(WAYS)),
    ),
    script=cut_off,
    expects=expects,
)
