"""Servers in containers: what docker does to them, and that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest
from kazoo.client import KazooClient

from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.containers.engine import IMAGE_VARIABLES, LABEL, ZOOKEEPER_IMAGE, ContainersError, Engine
from rebalance_lab.world.containers.ensemble import ContainerEnsemble
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.process.states import RunState

pytestmark = [pytest.mark.docker, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def whole(docker_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerEnsemble]:
    with ContainerEnsemble.start(
        docker_engine, tmp_path_factory.mktemp("ensemble"), lag_nodes=("z1", "z3")
    ) as ensemble:
        yield ensemble


@pytest.fixture
def ensemble(whole: ContainerEnsemble) -> Iterator[ContainerEnsemble]:
    yield whole
    whole.make_whole()


def eventually(condition: Callable[[], bool], what: str, timeout_s: float = 40) -> None:
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, what
        time.sleep(0.05)


def followers(ensemble: ContainerEnsemble) -> list[str]:
    leader = ensemble.wait_until_ready()
    return [name for name in ensemble.servers if name != leader]


def serves(ensemble: ContainerEnsemble, name: str) -> bool:
    return ensemble.servers[name].standing_now().mode is not None


def write(connect: str, path: str) -> int:
    """Create a znode as somebody else's client would. Returns its zxid."""
    client = KazooClient(connect)
    client.start(timeout=60)
    try:
        client.create(path, b"x")
        return int(client.exists(path).czxid)
    finally:
        client.stop()
        client.close()


def test_its_transaction_log_is_read_on_this_machine(ensemble: ContainerEnsemble) -> None:
    zxid = write(ensemble.connect_string, "/logged")
    logged = EnsembleLog(ensemble.data_dirs).poll()
    assert [(each.zxid, each.data) for each in logged if each.path == "/logged"] == [(zxid, b"x")]


def test_a_killed_leader_is_replaced_and_comes_back_at_its_address(ensemble: ContainerEnsemble) -> None:
    old = ensemble.wait_until_ready()
    before = ensemble.connect_to(old)
    ensemble.kill(old)
    assert ensemble.servers[old].state is RunState.GONE
    ended = ensemble.servers[old].ended_by_itself()
    assert ended is not None
    assert "the last lines of container" in ended
    eventually(lambda: ensemble.leader_now() not in (None, old), "no other leader")
    ensemble.start_node(old)
    eventually(lambda: serves(ensemble, old), f"{old} never came back")
    write(before, "/back")


def test_a_paused_node_stands_still_and_goes_on(ensemble: ContainerEnsemble) -> None:
    name = followers(ensemble)[0]
    ensemble.pause(name)
    standing = ensemble.servers[name].standing_now()
    assert (standing.state, standing.mode) == (RunState.STOPPED, None)
    ensemble.resume(name)
    eventually(lambda: serves(ensemble, name), f"{name} never went on")


def test_a_partitioned_follower_gives_up_serving_until_it_rejoins(ensemble: ContainerEnsemble) -> None:
    name, other = followers(ensemble)
    ensemble.partition(name)
    eventually(lambda: not serves(ensemble, name), f"{name} serves without its peers")
    assert ensemble.servers[name].state is RunState.ALIVE
    assert "not currently serving" in ensemble.servers[name].command("srvr"), "its clients still reach it"
    zxid = write(ensemble.connect_to(other), "/majority")
    ensemble.rejoin(name)
    eventually(lambda: (ensemble.servers[name].standing_now().zxid or 0) >= zxid, f"{name} did not learn of {zxid:#x}")


def test_a_partitioned_node_that_may_lag_has_no_way_round(ensemble: ContainerEnsemble) -> None:
    """Its proxies are on this machine, which it could reach from its clients' network, too. z3, as who
    asks for an election with the highest number keeps the connection."""
    before = ensemble.lag_seen("z3").refused
    ensemble.partition("z3")
    ensemble.kill("z3")
    ensemble.start_node("z3")
    eventually(lambda: ensemble.lag_seen("z3").refused >= before + 8, "z3 looked for no leader")
    assert not serves(ensemble, "z3")
    assert ensemble.servers["z3"].state is RunState.ALIVE
    ensemble.rejoin("z3")
    eventually(lambda: serves(ensemble, "z3"), "z3 never came back")


def test_a_node_cut_off_from_clients_still_follows(ensemble: ContainerEnsemble) -> None:
    name, other = followers(ensemble)
    ensemble.cut_off(name)
    assert not serves(ensemble, name)
    zxid = write(ensemble.connect_to(other), "/unseen")
    ensemble.heal(name)
    eventually(lambda: (ensemble.servers[name].standing_now().zxid or 0) >= zxid, f"{name} is unreachable")


def test_a_restart_is_a_stop_and_a_start(ensemble: ContainerEnsemble) -> None:
    name = followers(ensemble)[0]
    container = ensemble.servers[name].container
    started = container.attrs["State"]["StartedAt"]
    ensemble.restart(name)
    eventually(lambda: serves(ensemble, name), f"{name} never came back")
    container.reload()
    assert container.attrs["State"]["StartedAt"] > started
    assert container.attrs["RestartCount"] == 0, "nobody but us restarted it"


def test_a_lagging_follower_shows_the_past(ensemble: ContainerEnsemble) -> None:
    if ensemble.wait_until_ready() == "z1":
        ensemble.kill("z1")
        eventually(lambda: ensemble.leader_now() not in (None, "z1"), "no other leader")
        ensemble.make_whole()
    ensemble.lag("z1", 60_000)
    zxid = write(ensemble.connect_to("z2"), "/late")
    assert (ensemble.servers["z1"].standing_now().zxid or 0) < zxid
    assert ensemble.lag_seen("z1").held > 0
    ensemble.lag("z1", 0)
    eventually(lambda: (ensemble.servers["z1"].standing_now().zxid or 0) >= zxid, "z1 never caught up")


def test_only_followers_named_before_can_lag(ensemble: ContainerEnsemble) -> None:
    with pytest.raises(ContainersError, match=r"z2 cannot lag: start the ensemble with lag_nodes=\('z2',\)"):
        ensemble.lag("z2", 100)


def test_what_a_kernel_waits_for(ensemble: ContainerEnsemble) -> None:
    name = followers(ensemble)[0]

    async def story() -> None:
        ensemble.kill(name)
        assert (await ensemble.standings())[name].state is RunState.GONE
        with pytest.raises(EmbeddedServerError, match=rf"^{name} \(container .*\) has ended"):
            await ensemble.serving(name)
        await asyncio_thread(lambda: ensemble.start_node(name))
        await ensemble.serving(name)
        assert await ensemble.leader() != name

    async def asyncio_thread(work: Callable[[], None]) -> None:
        await ensemble.future(asyncio.to_thread(work), "a start")

    with LiveKernel() as live:
        live.run(story(), "story")


def test_a_session_may_have_several(ensemble: ContainerEnsemble, docker_engine: Engine, tmp_path: Path) -> None:
    with ContainerEnsemble.start(docker_engine, tmp_path, nodes=1) as alone:
        zxid = write(alone.connect_string, "/elsewhere")
        assert [each.zxid for each in EnsembleLog(alone.data_dirs).poll() if each.path == "/elsewhere"] == [zxid]
        assert not [each for each in EnsembleLog(ensemble.data_dirs).poll() if each.path == "/elsewhere"]


def test_a_missing_image_is_named_with_what_to_do(docker_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = IMAGE_VARIABLES[ZOOKEEPER_IMAGE]
    monkeypatch.setenv(variable, "rebalance-lab/never-made")
    with pytest.raises(ContainersError, match=f"docker pull rebalance-lab/never-made, or name another with {variable}"):
        docker_engine.image(ZOOKEEPER_IMAGE)


def test_killing_their_process_removes_containers_and_networks(docker_engine: Engine, tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path\n"
        "from rebalance_lab.world.containers.engine import Engine\n"
        "from rebalance_lab.world.containers.ensemble import ContainerEnsemble\n"
        "engine = Engine(); ContainerEnsemble.start(engine, Path(sys.argv[1]), nodes=1).pause('z1')\n"
        "print(engine.session, flush=True); time.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        session = process.stdout.readline().strip()
        mine = {"label": f"{LABEL}={session}"}
        client: docker.DockerClient = docker_engine.client
        assert [each.status for each in client.containers.list(all=True, filters=mine)] == ["paused"]
        assert len(client.networks.list(filters=mine)) == 2
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def gone() -> bool:
        listed = client.containers.list(all=True, filters=mine, ignore_removed=True)
        return not listed and not client.networks.list(filters=mine)

    eventually(gone, "containers outlived their process")
