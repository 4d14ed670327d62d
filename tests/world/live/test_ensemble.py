"""An ensemble of three, really started: one for all tests here, each of which leaves it whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.world import errors
from rebalance_lab.world.live.ensemble import EmbeddedEnsemble
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.live.proxy import TcpProxy
from rebalance_lab.world.live.session import LiveSession
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.ports import SessionEventKind, WatchKind
from rebalance_lab.world.process.states import RunState, run_state

TIMEOUT_MS = 8000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEnsemble]:
    with EmbeddedEnsemble.start(tmp_path_factory.mktemp("ensemble"), lag_nodes=("z1",)) as ensemble:
        yield ensemble


@pytest.fixture(scope="module")
def grown(running: EmbeddedEnsemble) -> tuple[EnsembleLog, list[Transaction]]:
    """A reader of the log, and what it has found so far: it looks after every test."""
    return EnsembleLog(running.data_dirs), []


@pytest.fixture
def ensemble(running: EmbeddedEnsemble, grown: tuple[EnsembleLog, list[Transaction]]) -> Iterator[EmbeddedEnsemble]:
    """The ensemble, whole again."""
    yield running
    log, found = grown
    found += log.poll()
    for name, node in running.servers.items():
        if node.state is RunState.STOPPED:
            running.resume(name)
        if node.state is RunState.GONE:
            running.start_node(name)
    running.lag("z1", 0)
    running.wait_until_ready()


async def opened(bench: Any, connect: str, first: str) -> LiveSession:
    """A session to several servers, connected to the one it is to try first."""
    while True:
        session = bench.factory.open(connect, TIMEOUT_MS)
        await bench.seen(session, SessionEventKind.CONNECTED)
        if str(session.server_list.servers[0]) == first:
            return session
        await session.close()


def test_three_nodes_serve_and_one_leads(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    standings = ensemble.standings_now()
    assert list(standings) == ["z1", "z2", "z3"]
    assert sorted(standing.mode or "" for standing in standings.values()) == ["follower", "follower", "leader"]
    assert all(standing.state is RunState.ALIVE for standing in standings.values())
    leader = ensemble.leader_now()
    assert leader is not None
    assert standings[leader].leads
    assert ensemble.connect_string == ",".join(ensemble.connect_to(name) for name in standings)
    assert [run_state(pid) for pid in ensemble.pids] == [RunState.ALIVE] * 3
    assert ensemble.servers["z2"].command("ruok") == "imok"

    async def story() -> None:
        assert await ensemble.leader() == leader
        now = await ensemble.standings()
        assert {name: standing.mode for name, standing in now.items()} == {
            name: standing.mode for name, standing in standings.items()
        }
        await ensemble.serving("z2")

    bench.run(story)


def test_a_session_moves_and_takes_its_watches_along(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    """Killed with the node it is connected to: the next one is told of its watches, and of what
    changed meanwhile; behind a chroot as well. That node only follows: no election disturbs the others."""

    async def story() -> None:
        leader = await ensemble.leader()
        left, next_one = ("z3", "z2") if leader == "z2" else ("z2", "z3")
        writer = bench.factory.open(ensemble.connect_to(leader), TIMEOUT_MS)
        for path in ("/move", "/move/watched"):
            await writer.create(path, b"")
        connect = f"{ensemble.connect_to(left)},{ensemble.connect_to(next_one)}/move"
        session = await opened(bench, connect, ensemble.connect_to(left))
        before = session.session_id
        await session.create("/mine", b"", ephemeral=True)
        child = (await session.children("/", watch=True)).watch
        data = (await session.get("/watched", watch=True)).watch
        assert child is not None
        assert data is not None
        ensemble.kill(left)
        await writer.set("/move/watched", b"x")
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert session.session_id == before
        event = await data
        assert (event.kind, event.path) == (WatchKind.CHANGED, "/watched")
        await session.create("/another", b"")
        event = await child
        assert (event.kind, event.path) == (WatchKind.CHILD, "/")
        assert (await writer.get("/move/mine")).value.stat.ephemeral_owner == before
        await session.close()
        await writer.close()

    bench.run(story)


def test_a_node_that_is_behind_refuses_a_session_and_the_next_is_tried(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    async def story() -> None:
        follower = ensemble.servers["z2"]
        proxy = TcpProxy(bench.live.loop, "127.0.0.1", follower.port)
        bench.proxies.append(proxy)
        behind = ensemble.connect_to("z1")
        session = await opened(bench, f"{behind},{proxy.connect_string}", proxy.connect_string)
        before = session.session_id
        ensemble.lag("z1", 60_000)
        await session.create("/ahead", b"")
        proxy.cut()
        await bench.seen(session, SessionEventKind.DISCONNECTED)
        with pytest.raises(errors.ConnectionLoss):
            await session.get("/ahead")  # waits for z1, which hangs up
        assert session.last_loss.startswith(f"{behind}: ")
        assert session.last_loss.endswith(
            "before it answered (it is not serving, or has not yet seen what this session has)"
        )
        await bench.seen(session, SessionEventKind.CONNECTED)
        assert session.session_id == before
        assert proxy.counters.connections == 2
        await session.close()

    bench.run(story)


def test_a_follower_lags_and_its_sessions_do_not_notice(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    """For longer than their timeout: 1 s."""
    at = ensemble.connect_to

    async def story() -> None:
        behind = await bench.connected(at("z1"), timeout_ms=1000)
        ahead = await bench.connected(at("z2"))
        await ahead.create("/lagging", b"")
        await bench.until(
            lambda: ensemble.servers["z1"].standing_now().zxid == ensemble.servers["z2"].standing_now().zxid
        )
        ensemble.lag("z1", 600_000)
        watch = (await behind.children("/lagging", watch=True)).watch
        created = await ahead.create("/lagging/new", b"")
        await bench.live.kernel.sleep(2_000_000)
        assert (await behind.children("/lagging")).value.names == ()
        assert (await ahead.children("/lagging")).value.names == ("new",)
        assert not watch.done
        standings = await ensemble.standings()
        assert standings["z1"].mode == "follower"
        assert (standings["z1"].zxid or 0) < created.zxid <= (standings["z2"].zxid or 0)
        seen = ensemble.lag_seen("z1")
        assert seen.held >= 1
        assert (seen.delay_ms, seen.following) == (600_000, True)
        ensemble.lag("z1", 0)
        assert (await watch).kind is WatchKind.CHILD
        assert len(behind.events) == 0
        assert ensemble.lag_seen("z1").delayed >= seen.held
        await behind.close()
        await ahead.close()

    bench.run(story)


def test_who_cannot_lag(ensemble: EmbeddedEnsemble) -> None:
    with pytest.raises(EmbeddedServerError, match=r"z2 cannot lag: start the ensemble with lag_nodes=\('z2',\)"):
        ensemble.lag("z2", 100)
    with pytest.raises(EmbeddedServerError, match="z3 cannot lag"):
        ensemble.lag_seen("z3")
    with pytest.raises(ValueError, match="a delay of -1 ms"):
        ensemble.lag("z1", -1)
    ensemble.kill("z1")
    while ensemble.lag_seen("z1").following:
        pass  # the proxy hears of it at once
    with pytest.raises(EmbeddedServerError, match="z1 follows no leader now"):
        ensemble.lag("z1", 100)


def test_a_leader_that_is_killed_is_replaced_and_comes_back(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    async def story() -> None:
        first = await ensemble.leader()
        session = await bench.connected(ensemble.connect_string, TIMEOUT_MS)
        epoch = (await session.create("/epoch", b"")).zxid >> 32
        ensemble.kill(first)
        assert ensemble.servers[first].state is RunState.GONE
        second = await ensemble.leader()
        assert second != first
        while True:
            try:
                zxid = (await session.set("/epoch", b"")).zxid
                break
            except errors.ConnectionLoss:
                continue
        assert zxid >> 32 > epoch
        standing = (await ensemble.standings())[first]
        assert (standing.state, standing.mode, standing.zxid) == (RunState.GONE, None, None)
        ensemble.start_node(first)
        await ensemble.serving(first)
        assert await ensemble.leader() == second
        with pytest.raises(EmbeddedServerError, match=f"{first} runs already"):
            ensemble.start_node(first)
        await session.close()

    bench.run(story)


def test_without_a_majority_nobody_serves(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    async def story() -> None:
        leader = await ensemble.leader()
        others = [name for name in ensemble.servers if name != leader]
        for name in others:
            ensemble.kill(name)
        while (await ensemble.standings())[leader].mode is not None:
            await bench.live.kernel.sleep(10_000)
        with pytest.raises(EmbeddedServerError, match=rf"nobody leads after 0\.1 s \(.*{leader} alive, not serving"):
            await ensemble.leader(timeout_s=0.1)
        with pytest.raises(EmbeddedServerError, match=rf"^{others[0]} .* has ended; the last lines of"):
            await ensemble.serving(others[0])

    bench.run(story)


def test_a_paused_node(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    async def story() -> None:
        leader = await ensemble.leader()
        follower = next(name for name in ensemble.servers if name != leader)
        ensemble.pause(follower)
        standing = (await ensemble.standings())[follower]
        assert (standing.state, standing.mode) == (RunState.STOPPED, None)
        assert str(standing) == f"{follower} stopped, not serving"
        assert await ensemble.leader() == leader  # a majority is left
        ensemble.resume(follower)
        await ensemble.serving(follower)

    bench.run(story)


def test_a_rolling_restart(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    """Each node once, the leader last; a session lives through it, and its ephemeral znode."""

    async def story() -> None:
        leader, pids = await ensemble.leader(), ensemble.pids
        session = await bench.connected(ensemble.connect_string, TIMEOUT_MS)
        await session.create("/rolling", b"", ephemeral=True)
        order = await ensemble.rolling_restart()
        assert order[-1] == leader
        assert sorted(order) == ["z1", "z2", "z3"]
        assert not set(pids) & set(ensemble.pids)
        assert [run_state(pid) for pid in pids] == [RunState.GONE] * 3
        while True:
            try:
                found = (await session.exists("/rolling")).value
                break
            except errors.ConnectionLoss:
                continue
        assert found.ephemeral_owner == session.session_id
        await session.close()

    bench.run(story, bound_us=40_000_000)


# -- the log ------------------------------------------------------------------------------------


def test_a_write_that_only_the_old_leader_logged_never_happened(ensemble: EmbeddedEnsemble, bench: Any) -> None:
    """The followers are killed, the leader still logs a write, and is killed. It comes back to
    a leader that never heard of it, and cuts its log back; or it is given a snapshot, when more
    was written meanwhile, and what it logged stays in its log as a dead leaf."""
    log = EnsembleLog(ensemble.data_dirs)

    async def alone(path: str) -> bool:
        """Whether a leader without followers logged a write before it gave up."""
        leader = await ensemble.leader()
        followers = [name for name in ensemble.servers if name != leader]
        session = await bench.connected(ensemble.connect_to(leader), TIMEOUT_MS)
        await session.create(f"{path}-before", b"")
        own = TransactionLog(ensemble.servers[leader].transaction_dir)
        own.poll()
        for name in followers:
            ensemble.kill(name)
        lost = session.create(path, b"")
        logged: list[str] = []
        while path not in logged and not lost.done:
            logged += [each.path for each in own.poll()]
            await bench.live.kernel.sleep(1000)
        ensemble.kill(leader)
        with pytest.raises(errors.ConnectionLoss):
            await lost
        session.abandon()
        for name in followers:
            ensemble.start_node(name)
        assert await ensemble.leader() != leader
        ensemble.start_node(leader)
        await ensemble.serving(leader)
        after = await bench.connected(ensemble.connect_to(followers[0]), TIMEOUT_MS)
        assert (await after.exists(path)).value is None
        await after.create(f"{path}-after", b"")
        await after.close()
        return path in logged

    async def story() -> str:
        for attempt in range(5):  # the leader may notice first: it looks every half second
            log.poll()
            if await alone(f"/alone-{attempt}"):
                return f"/alone-{attempt}"
        raise AssertionError("five leaders gave up before they logged a write")

    path = bench.run(story, bound_us=60_000_000)
    told = [each.path for each in log.poll() if each.path.startswith(path)]
    assert told == [f"{path}-before", f"{path}-after"]


def test_the_log_read_as_it_grew_and_at_once_is_the_same(
    ensemble: EmbeddedEnsemble, grown: tuple[EnsembleLog, list[Transaction]]
) -> None:
    """After all that the tests here did to the nodes."""
    log, found = grown
    found += log.poll()
    assert EnsembleLog(ensemble.data_dirs).poll() == found
    zxids = [each.zxid for each in found]
    assert zxids == sorted(zxids)
    assert zxids
