"""Leaders, followers and majorities come and go; sessions and what was acknowledged stay."""

from __future__ import annotations

from conformance_harness import EnsembleHarness

from rebalance_lab.history.transactions import TransactionKind
from rebalance_lab.kernel import Future
from rebalance_lab.world.errors import ConnectionLoss
from rebalance_lab.world.ports import Reply, SessionEvent, SessionEventKind, SessionState, WatchKind, ZooKeeper

CONNECTED, DISCONNECTED = SessionEventKind.CONNECTED, SessionEventKind.DISCONNECTED

#: Writes under way at each session when the leader dies.
IN_FLIGHT = 40


def epoch(zxid: int) -> int:
    return zxid >> 32


def all_servers(h: EnsembleHarness, first: str) -> tuple[str, ...]:
    return (first, *(name for name in h.servers if name != first))


async def reconnected(h: EnsembleHarness, session: ZooKeeper) -> None:
    """The session has lost its connection and has one again: perhaps after more than one try."""
    while True:
        await h.expect(session, DISCONNECTED)
        event: SessionEvent = await h.expect(session, CONNECTED)
        assert event.session_id == session.session_id
        if len(session.events) == 0:
            return


def test_sessions_ephemerals_and_watches_outlive_the_leader(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader = await h.leader()
        sessions = {name: await h.connected(servers=all_servers(h, name)) for name in h.servers}
        ids = {name: session.session_id for name, session in sessions.items()}
        for name, session in sessions.items():
            before = await session.create(f"{h.root}/{name}", b"", ephemeral=True)
        watches = {
            name: (await session.exists(f"{h.root}/new", watch=True)).watch for name, session in sessions.items()
        }
        h.kill(leader)
        for session in sessions.values():
            await reconnected(h, session)
        successor = await h.leader()
        assert successor != leader
        assert {name: session.session_id for name, session in sessions.items()} == ids
        some = sessions[successor]
        after = await some.create(f"{h.root}/new", b"")
        assert epoch(after.zxid) > epoch(before.zxid)
        for name, session in sessions.items():
            assert (await watches[name]).kind is WatchKind.CREATED
            found = (await session.exists(f"{h.root}/{name}")).value
            assert found is not None
            assert found.ephemeral_owner == ids[name]
            assert h.at(session) != leader
        assert (await some.children(h.root)).value.names == ("new", *h.servers)
        closed = [txn for txn in h.transactions() if txn.kind is TransactionKind.SESSION_CLOSED]
        assert not [txn for txn in closed if txn.session_id in ids.values()]
        await h.start(leader)
        back = await h.connected(servers=(leader,))
        assert (await back.children(h.root)).value.names == ("new", *h.servers)
        zxids = [txn.zxid for txn in h.transactions()]
        assert zxids == sorted(set(zxids))

    conform_ensemble(story)


def test_a_write_under_way_when_the_leader_dies_is_done_or_unknown(conform_ensemble):
    """An answer that it was done is the truth; a lost connection says nothing; none is refused."""

    async def story(h: EnsembleHarness) -> None:
        leader, follower, _ = await h.roles()
        sessions = {name: await h.connected(servers=all_servers(h, name)) for name in (leader, follower)}
        asked: dict[str, Future[Reply[str]]] = {}
        for number in range(IN_FLIGHT):
            for name, session in sessions.items():
                path = f"{h.root}/{name}-{number}"
                asked[path] = session.create(path, b"")
        await asked[f"{h.root}/{leader}-3"]
        await asked[f"{h.root}/{follower}-3"]
        h.kill(leader)
        for session in sessions.values():
            await reconnected(h, session)
        outcomes = {path: future.error for path, future in asked.items()}
        assert {type(error) for error in outcomes.values()} <= {type(None), ConnectionLoss}
        observer = await h.connected(servers=(await h.leader(),))
        there = {f"{h.root}/{name}" for name in (await observer.children(h.root)).value.names}
        done = {path for path, error in outcomes.items() if error is None}
        assert done <= there
        logged = [txn for txn in h.transactions() if txn.path in asked]
        assert {txn.path for txn in logged} == there
        assert len(logged) == len(there), "each once"
        zxids = {txn.path: txn.zxid for txn in logged}
        assert all(zxids[path] == asked[path].result().zxid for path in done)
        for name in sessions:  # of one session, what was asked later is not done without the earlier
            numbers = sorted(int(path.rpartition("-")[2]) for path in there if path.startswith(f"{h.root}/{name}-"))
            assert numbers == list(range(len(numbers)))

    conform_ensemble(story)


def test_without_a_majority_nothing_is_served(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, first, second = await h.roles()
        session = await h.connected(servers=all_servers(h, leader))
        before = session.session_id
        made = await session.create(f"{h.root}/e", b"", ephemeral=True)
        h.kill(first)
        assert (await session.set(f"{h.root}/e", b"two are enough")).zxid > made.zxid
        h.kill(second)
        await h.expect(session, DISCONNECTED)
        asked = session.create(f"{h.root}/never", b"")
        assert isinstance(await _error(asked), ConnectionLoss)
        assert session.state is SessionState.CONNECTING
        assert len(session.events) == 0
        await h.start(first)
        await h.expect(session, CONNECTED)
        assert session.session_id == before
        node = (await session.get(f"{h.root}/e")).value
        assert (node.data, node.stat.ephemeral_owner) == (b"two are enough", before)
        assert epoch((await session.create(f"{h.root}/again", b"")).zxid) > epoch(made.zxid)
        assert (await session.children(h.root)).value.names == ("again", "e")

    conform_ensemble(story)


def test_a_follower_that_dies_takes_only_its_connections_along(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, follower, other = await h.roles()
        moved, stays = await h.connected(servers=(follower, other)), await h.connected(servers=(leader,))
        made = await moved.create(f"{h.root}/e", b"", ephemeral=True)
        h.kill(follower)
        await h.expect(moved, DISCONNECTED)
        await h.expect(moved, CONNECTED)
        assert h.at(moved) == other
        assert epoch((await moved.create(f"{h.root}/after", b"")).zxid) == epoch(made.zxid)
        assert await h.leader() == leader
        assert len(stays.events) == 0
        await h.start(follower)
        back = await h.connected(servers=(follower,))
        assert (await back.children(h.root)).value.names == ("after", "e"), "it has learnt what it missed"

    conform_ensemble(story)


def test_a_paused_follower_loses_its_clients_to_the_others(conform_ensemble):
    """Nothing comes from it any more: after two thirds of the session its clients go elsewhere."""

    async def story(h: EnsembleHarness) -> None:
        leader, follower, _ = await h.roles()
        session = await h.connected(6_000, servers=(follower, leader))
        before = session.session_id
        await session.create(f"{h.root}/e", b"", ephemeral=True)
        h.pause(follower)
        began_us = h.kernel.now_us()
        pending = session.get(h.root)
        await h.expect(session, DISCONNECTED)
        assert 3_500_000 <= h.kernel.now_us() - began_us <= 5_000_000
        assert isinstance(pending.error, ConnectionLoss)
        await h.expect(session, CONNECTED)
        assert h.at(session) == leader
        assert session.session_id == before
        assert (await session.exists(f"{h.root}/e")).value.ephemeral_owner == before
        h.resume(follower)

    conform_ensemble(story)


def test_a_paused_leader_is_replaced_and_comes_back_as_a_follower(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, follower, _ = await h.roles()
        session = await h.connected(servers=all_servers(h, follower))
        before = session.session_id
        made = await session.create(f"{h.root}/e", b"", ephemeral=True)
        h.pause(leader)
        await reconnected(h, session)
        after = await session.create(f"{h.root}/later", b"")
        assert epoch(after.zxid) > epoch(made.zxid)
        assert session.session_id == before
        h.resume(leader)
        assert await h.leader() != leader
        back = h.open(servers=(leader,))
        await h.expect(back, CONNECTED)

        async def knows() -> bool:
            return (await back.exists(f"{h.root}/later")).value is not None

        await h.until(knows, "what was written while it was paused")
        assert (await back.exists(f"{h.root}/e")).value.ephemeral_owner == before

    conform_ensemble(story)


def test_a_new_leader_brings_a_lagging_follower_up_to_date_and_it_lags_again(conform_ensemble):
    async def story(h: EnsembleHarness) -> None:
        leader, slow, other = await h.roles()  # of the two, who know the same, the last one wins
        reader, writer = await h.connected(servers=(slow,)), await h.connected(servers=(other,))
        h.lag(slow, 120_000)
        await writer.create(f"{h.root}/before", b"")
        assert (await reader.children(h.root)).value.names == ()
        h.kill(leader)
        await reconnected(h, reader)
        await reconnected(h, writer)
        assert await h.leader() == other
        assert (await reader.children(h.root)).value.names == ("before",)
        await writer.create(f"{h.root}/after", b"")
        await h.sleep_ms(100)
        assert (await reader.children(h.root)).value.names == ("before",)
        h.lag(slow, 0)

        async def knows() -> bool:
            return (await reader.children(h.root)).value.names == ("after", "before")

        await h.until(knows, "what it lagged behind")

    conform_ensemble(story)


async def _error(future: Future[Reply[str]]) -> BaseException | None:
    try:
        await future
    except ConnectionLoss as error:
        return error
    return None
