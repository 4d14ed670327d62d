"""Trouble of ZooKeeper itself: one server of three is killed or paused, or all are restarted in turn.

`fault`: kill, pause, or rolling. `target`: the leader or a follower. As long as a majority of servers is
up, sessions survive and move to another server, and a group should notice nothing. No client is served
while a leader is elected. In the control all servers stay up.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.server import kill_server, pause_server, restart_servers
from rebalance_lab.subjects.zk_group.lab import GroupLab
from rebalance_lab.subjects.zk_group.subject import ZK_GROUP, common_parameters
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import SESSION_TICKS, Scenario, usual
from rebalance_lab.world.zk.server_list import JAVA_WAITS


async def servers(lab: GroupLab) -> None:
    down_ms = lab.plan.number("down_ms")
    await lab.assemble()

    lab.phase("control" if lab.plan.control else lab.plan.text("fault"))
    if lab.plan.control:
        await lab.sleep_ms(down_ms)
    elif lab.plan.text("fault") == "rolling":
        await restart_servers(lab, down_ms)
    elif lab.plan.text("fault") == "kill":
        await kill_server(lab, await target(lab), down_ms)
    else:
        await pause_server(lab, await target(lab), down_ms)

    await lab.recover()


async def target(lab: GroupLab) -> str:
    """The server to which the fault happens."""
    leader = await lab.servers.leader()
    if lab.plan.text("target") == "leader":
        return leader
    return next(name for name in lab.servers.names if name != leader)


def demands(plan: Plan) -> None:
    """Raises PlanError unless there is a follower for a fault of one, and unless the runner's session, the longest
    that a server grants, survives the pause of a server: its client notices after 2/3 of the session, and then needs
    up to 2 s to reach the next server. The control has no fault."""
    if plan.control or plan.text("fault") == "rolling":
        return
    if plan.text("target") == "follower" and plan.number("servers") == 1:
        raise PlanError("servers=1: a single server has no follower; set servers to 3 or 5, or target=leader")
    needed_us = 3 * (JAVA_WAITS.random_us + JAVA_WAITS.round_us)
    if plan.text("fault") == "pause" and SESSION_TICKS[1] * plan.number("tick_ms") * 1000 < needed_us:
        raise PlanError(
            f"tick_ms={plan.number('tick_ms')}: the runner's session may end while a server stands still; "
            f"set tick_ms to {needed_us // 1000 // SESSION_TICKS[1]} or more"
        )


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Sessions survive. An election that takes longer than a session may end one."""
    if plan.control or plan.text("target") == "follower":
        return usual()
    return usual(belief_overlap=None, effect_overlap=None, zombie_overlap=None, unowned_window=None)


SCENARIO = Scenario(
    name="servers",
    subject=ZK_GROUP,
    summary="a ZooKeeper server is killed or paused, or all servers are restarted in turn",
    parameters=(
        *common_parameters(servers=3, session_timeout_ms=6000),
        Parameter("fault", "kill", "", "what happens to the server", choices=("kill", "pause", "rolling")),
        Parameter("target", "leader", "", "which server it happens to", choices=("leader", "follower")),
        Parameter("down_ms", 2000, "ms", "how long a server is down", 1),
    ),
    script=servers,
    expects=expects,
    demands=demands,
)
