"""Servers that break the protocol: the connection is broken and made anew, a warning tells
why, and nobody waits for ever."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import pytest
from scripted_server import EXPIRED, SESSION, STAT, WELCOME, ScriptedServer, frame, reply

from rebalance_lab.kernel import MailboxFull
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world import errors
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.ports import SessionEvent, SessionEventKind, SessionState
from rebalance_lab.world.zk import session as session_module


def run(live: LiveKernel, story: Callable[[], Any]) -> Any:
    async def bounded() -> Any:
        async with live.kernel.timeout(20_000_000, "the test"):
            return await story()

    return live.run(bounded())


VIOLATIONS: dict[str, tuple[bytes, str]] = {
    "another xid": (reply(2, STAT), r"an answer with xid 2 where 1 \(exists\) comes next"),
    "an answer twice": (reply(1, STAT) * 2, r"an answer with xid 1 where 2 \(get\) comes next"),
    "an answer cut short": (reply(1, STAT[:-1]), "ends too early"),
    "no header": (frame(b"123"), "an answer of 3 bytes has no header"),
    "an oversize frame": (struct.pack("!i", 5 * 1024 * 1024), "a frame of 5242880 bytes"),
    "a negative frame": (struct.pack("!i", -5), "a frame of -5 bytes"),
    "an unknown watch event": (reply(-1, struct.pack("!iii", 9, 3, 2) + b"/a"), "unknown type 9 for /a"),
    "a watch event without a path": (reply(-1, struct.pack("!ii", 1, 3)), "ends too early"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_breaks_the_connection(
    live: LiveKernel,
    server: ScriptedServer,
    factory: LiveZooKeeperFactory,
    name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong, why = VIOLATIONS[name]
    server.scripts = [[frame(WELCOME), wrong], [frame(WELCOME), reply(3, STAT)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
        asked, behind = session.exists("/a"), session.get("/b")
        with pytest.raises(errors.ConnectionLoss):
            await behind
        assert asked.done
        assert await session.events.get() == SessionEvent(SessionEventKind.DISCONNECTED, SESSION)
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
        assert (await session.exists("/a")).zxid == 7  # and it works again

    run(live, story)
    (warning,) = caplog.records
    assert warning.levelname == "WARNING"
    begin = f"ZooKeeper server {server.connect_string} violates the protocol in session 0x1234: "
    assert re.match(re.escape(begin) + f".*{why}", warning.getMessage()), warning.getMessage()


def test_an_answer_to_nothing(
    live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory, caplog: pytest.LogCaptureFixture
) -> None:
    server.scripts = [[frame(WELCOME), reply(1, STAT) + reply(2, STAT)], [frame(WELCOME)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        assert (await session.exists("/a")).zxid == 7  # what came before is taken
        kinds = [(await session.events.get()).kind.value for _ in range(3)]
        assert kinds == ["connected", "disconnected", "connected"]

    run(live, story)
    (told,) = caplog.messages
    assert ": an answer with xid 2 and nothing was asked; " in told


@pytest.mark.parametrize("answer", [b"short", WELCOME[:20], WELCOME[:-5]])
def test_a_broken_welcome(
    live: LiveKernel,
    server: ScriptedServer,
    factory: LiveZooKeeperFactory,
    answer: bytes,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server.scripts = [[frame(answer)], [frame(WELCOME)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        with pytest.raises(errors.ConnectionLoss):
            await session.get("/a")
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED

    run(live, story)
    (told,) = caplog.messages
    assert "violates the protocol" in told
    assert "connect response" in told


def test_a_server_that_never_answers(
    live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory, caplog: pytest.LogCaptureFixture
) -> None:
    """The connect timeout ends the attempt; that is no violation."""
    server.scripts = [[None], [frame(WELCOME)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 300)
        with pytest.raises(errors.ConnectionLoss):
            await session.get("/a")
        assert session.last_loss == f"{server.connect_string}: no session within the connect timeout of 0.3 s"
        assert session.state is SessionState.CONNECTING
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED

    run(live, story)
    assert caplog.messages == []


def test_what_is_told_to_the_next_server(
    live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory
) -> None:
    """Session id and password, the last zxid seen, then SetWatches before anything else."""
    lost = struct.pack("!i", -1)  # breaks the connection
    server.scripts = [
        [frame(WELCOME), reply(1, STAT, zxid=41), reply(2, code=-101, zxid=42), lost],
        [frame(WELCOME), reply(-8), reply(4, STAT)],
    ]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        for path in ("/here", "/missing"):
            await session.exists(path, watch=True)
        with pytest.raises(errors.ConnectionLoss):
            await session.exists("/here")
        assert (await session.exists("/here")).value is not None

    run(live, story)
    first, second = server.conversations
    assert struct.unpack_from("!iqiq", first[0]) == (0, 0, 4000, 0)
    assert struct.unpack_from("!iqiq", second[0]) == (0, 42, 4000, SESSION)
    assert second[0][28:44] == b"p" * 16
    xid, opcode, zxid, data, length = struct.unpack_from("!iiqii", second[1])
    assert (xid, opcode, zxid, data, second[1][24 : 24 + length]) == (-8, 101, 42, 1, b"/here")
    assert b"/missing" in second[1]
    assert struct.unpack_from("!ii", second[2]) == (4, 3)


def test_the_answer_that_says_expired(live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory) -> None:
    server.scripts = [[frame(WELCOME), struct.pack("!i", -1)], [frame(EXPIRED)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        with pytest.raises(errors.ConnectionLoss):
            await session.get("/a")
        with pytest.raises(errors.SessionExpired):
            await session.get("/a")
        kinds = [(await session.events.get()).kind.value for _ in range(3)]
        assert kinds == ["connected", "disconnected", "expired"]
        assert session.state is SessionState.EXPIRED
        assert factory.sessions == ()

    run(live, story)
    assert len(server.conversations) == 2


def test_requests_have_a_limit(
    live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "REQUESTS_LIMIT", 3)
    server.scripts = [[frame(WELCOME)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        session.get("/queued")
        assert (await session.events.get()).kind is SessionEventKind.CONNECTED
        session.get("/a")
        session.get("/b")
        with pytest.raises(MailboxFull, match="session 0x1234 has 3 requests without an answer"):
            session.get("/c")

    run(live, story)


def test_an_abandoned_session_tells_nobody(
    live: LiveKernel, server: ScriptedServer, factory: LiveZooKeeperFactory
) -> None:
    server.scripts = [[frame(WELCOME)]]

    async def story() -> None:
        session = factory.open(server.connect_string, 4000)
        await session.events.get()
        pending = session.get("/a")
        factory.close()
        assert session.state is SessionState.CLOSED
        with pytest.raises(errors.ConnectionLoss):
            await pending
        with pytest.raises(errors.SessionClosed):
            await session.get("/a")
        session.abandon()  # again is harmless

    run(live, story)
    assert [len(conversation) for conversation in server.conversations] == [1]  # connect, and nothing else
