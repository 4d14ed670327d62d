"""Random sessions against the model, on both servers, and on simulated ones with a planted bug."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from conformance_embedded import EmbeddedHarness
from conformance_machine import run
from conformance_simulated import SimulatedHarness
from hypothesis import Phase
from msgspec import structs

from rebalance_lab.kernel import Deadlock, TimedOut
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.ports import WatchKind
from rebalance_lab.world.simulated.authority import Authority, Outcome
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.server import Server
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.simulated.watches import Watches
from rebalance_lab.world.zk.messages import Request


@pytest.mark.parametrize(("recorded", "examples"), [(False, 100), (True, 40)], ids=["bare", "recorded"])
def test_random_sessions_on_the_simulated_server(recorded: bool, examples: int):
    run(lambda: SimulatedHarness(seed=1, recorded=recorded), examples=examples, phases=(Phase.generate, Phase.shrink))


def test_random_sessions_on_the_real_server(embedded_zookeeper: EmbeddedZooKeeper, transaction_log: TransactionLog):
    """Without shrinking, which takes minutes here: the simulator fails the same way, or is wrong."""
    run(lambda: EmbeddedHarness(embedded_zookeeper, transaction_log), examples=12, phases=(Phase.generate,))


def forgets_child_watches_on_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    rearm = Watches.rearm
    monkeypatch.setattr(
        Watches, "rearm", lambda self, tree, link, asked: rearm(self, tree, link, structs.replace(asked, child=()))
    )


def deletion_tells_no_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watches, "deleted", lambda self, path: self._fire(self.data, path, WatchKind.DELETED))


def ignores_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    expect = Tree._expect
    monkeypatch.setattr(Tree, "_expect", lambda self, path, version: expect(self, path, -1))


def loses_the_request_with_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = Server.arrived

    def lossy(server: Server, link: Link, message: Any) -> None:
        session = server._session_of.get(link)
        losing = server.sessions.losing
        if session is not None and session.process in losing:
            del losing[session.process]
            link.cut()
        else:
            arrived(server, link, message)

    monkeypatch.setattr(Server, "arrived", lossy)


def numbers_by_living_children(monkeypatch: pytest.MonkeyPatch) -> None:
    create = Tree.create

    def renumbered(tree: Tree, path: str, data: bytes, owner: int, sequence: bool, zxid: int, wall_ms: int) -> str:
        parent = tree.nodes.get(path.rpartition("/")[0])
        if sequence and parent is not None:
            path, sequence = f"{path}{len(parent.names):010d}", False
        return create(tree, path, data, owner, sequence, zxid, wall_ms)

    monkeypatch.setattr(Tree, "create", renumbered)


def keeps_what_a_refused_multi_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tree, "undo", lambda self, path: lambda: None)


def fires_watches_of_the_first_of_many_only(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Authority.write

    def short(authority: Authority, session: ServerSession, request: Request) -> Outcome:
        outcome = write(authority, session, request)
        return Outcome(outcome.records[:1], outcome.value, outcome.code)

    monkeypatch.setattr(Authority, "write", short)


@pytest.mark.parametrize(
    "plant",
    [
        forgets_child_watches_on_reconnect,
        deletion_tells_no_parent,
        ignores_versions,
        loses_the_request_with_the_reply,
        numbers_by_living_children,
        keeps_what_a_refused_multi_did,
        fires_watches_of_the_first_of_many_only,
    ],
)
def test_a_server_with_a_bug_is_caught(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)
    with pytest.raises((AssertionError, KeyError, TimedOut, Deadlock)):
        run(lambda: SimulatedHarness(seed=1), examples=300, phases=(Phase.generate,))
