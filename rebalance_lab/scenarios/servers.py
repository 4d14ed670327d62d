"""ZooKeeper's own trouble: a server of three dies, stands still, or all are restarted in turn.

`fault`: kill, pause, or rolling. `target`: the leader or a follower. As long as a majority serves,
sessions survive and move to another server; a group should notice nothing. While a leader is
elected nobody is served. In the control all servers live.
"""

from __future__ import annotations

from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.server import kill_server, pause_server, restart_servers
from rebalance_lab.trials.lab import Lab
from rebalance_lab.trials.plan import Parameter, Plan, common_parameters
from rebalance_lab.trials.scenario import Scenario, register, usual


async def servers(lab: Lab) -> None:
    down_ms = lab.plan.number("down_ms")
    await lab.prepare()
    lab.phase("joining")
    await lab.start_members(lab.plan.number("members"))
    await lab.rest("joined")

    lab.phase("control" if lab.plan.control else lab.plan.text("fault"))
    if lab.plan.control:
        await lab.sleep_ms(down_ms)
    elif lab.plan.text("fault") == "rolling":
        await restart_servers(lab, down_ms)
    elif lab.plan.text("fault") == "kill":
        await kill_server(lab, await target(lab), down_ms)
    else:
        await pause_server(lab, await target(lab), down_ms)

    lab.phase("recovery")
    await lab.rest("recovered")
    await lab.close()


async def target(lab: Lab) -> str:
    """The server that the fault is for."""
    leader = await lab.servers.leader()
    if lab.plan.text("target") == "leader":
        return leader
    return next(name for name in lab.servers.names if name != leader)


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Sessions survive. An election that takes longer than a session may cost one."""
    if plan.control or plan.text("target") == "follower":
        return usual()
    return usual(belief_overlap=None, effect_overlap=None, zombie_overlap=None, unowned_window=None)


SCENARIO = register(
    Scenario(
        name="servers",
        summary="a ZooKeeper server dies, stands still, or all are restarted in turn",
        claims=(),
        parameters=(
            *common_parameters(servers=3, session_timeout_ms=6000),
            Parameter("fault", "kill", "", "what happens to it", choices=("kill", "pause", "rolling")),
            Parameter("target", "leader", "", "which server", choices=("leader", "follower")),
            Parameter("down_ms", 2000, "ms", "how long a server is down", 1),
        ),
        script=servers,
        expects=expects,
    )
)
