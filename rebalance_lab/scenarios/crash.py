"""The crash (claim Z1): when a member's session ends, its registration and ownership vanish.

Three members share a topic. The first is killed (kill -9). Its id and its owner znodes are ephemeral:
they stay until the server ends the session, and are deleted with it. An outside session sees that they
are gone. In the control no member is killed.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Plan
from rebalance_lab.trials.scenario import Scenario, usual


async def crash(lab: GroupLab) -> None:
    first, *_ = await lab.assemble()

    lab.phase("control" if lab.plan.control else "crashed")
    if lab.plan.control:
        await lab.sleep_ms(lab.plan.number("session_timeout_ms"))
    else:
        await kill(lab, first)

    await lab.recover()


def expects(_plan: Plan) -> dict[str, Outcome | None]:
    """A crash costs time, not correctness."""
    return usual()


SCENARIO = Scenario(
    name="crash",
    subject=ZK_GROUP,
    summary="a member's process is killed; its registration and owner znodes vanish with its session",
    claims=("Z1",),
    parameters=common_parameters(),
    script=crash,
    expects=expects,
)
