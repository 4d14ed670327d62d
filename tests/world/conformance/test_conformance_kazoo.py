"""Where kazoo's client differs from Java's on purpose or by accident: why members do not use it."""

from __future__ import annotations

import pytest
from conformance_embedded import EmbeddedHarness, RealServerHarness
from conformance_harness import Harness
from conformance_kazoo import KazooHarness

from rebalance_lab.world.errors import ConnectionLoss
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.ports import SessionEventKind, WatchKind


def watched_paths(server: EmbeddedZooKeeper) -> set[str]:
    """The paths that the server would tell somebody of, from its own mouth."""
    return {line for line in server.command("wchp").splitlines() if line.startswith("/")}


@pytest.mark.parametrize("client", [EmbeddedHarness, KazooHarness])
def test_watches_of_a_lost_connection(
    client: type[RealServerHarness], embedded_zookeeper: EmbeddedZooKeeper, transaction_log: TransactionLog
):
    """Expected difference: after a reconnect within the session our watches stand at the server
    again (SetWatches, as in Java's client). kazoo gives its watches up when the connection is
    lost and never sends SetWatches, so a later change is told to nobody."""

    async def story(h: Harness) -> None:
        session = await h.connected()
        watch = (await session.get(h.root, watch=True)).watch
        assert h.root in watched_paths(embedded_zookeeper)
        await h.break_connection(session)
        await h.expect(session, SessionEventKind.CONNECTED)
        await session.exists(h.root)
        if h.kind == "kazoo":
            assert isinstance(watch.error, ConnectionLoss)
            assert h.root not in watched_paths(embedded_zookeeper)
        else:
            assert not watch.done
            assert h.root in watched_paths(embedded_zookeeper)
            await session.set(h.root, b"later")
            assert watch.result().kind is WatchKind.CHANGED

    client(embedded_zookeeper, transaction_log).run(story)
