"""Framing, batching and heartbeats of one connection, on a loop that only pretends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.world.live.codec import FRAME_LIMIT_BYTES, PING_FRAME
from rebalance_lab.world.live.link import Link, LinkState
from rebalance_lab.world.zk.connect_string import Server


class Call:
    """A call of the loop: soon, or at a time."""

    def __init__(self, at: float, callback: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.at = at
        self.callback = callback
        self.arguments = arguments
        self.cancelled = False

    def done(self) -> bool:
        return self.cancelled

    def cancel(self) -> None:
        self.cancelled = True


class PretendedLoop:
    """Time that stands until it is moved; the dialing task never runs."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[Call] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, callback: Callable[..., None], *arguments: Any) -> Call:
        call = Call(at, callback, arguments)
        self.calls.append(call)
        return call

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: Any) -> Call:
        return self.call_at(self.now + delay, callback, *arguments)

    def call_soon(self, callback: Callable[..., None], *arguments: Any) -> Call:
        return self.call_at(self.now, callback, *arguments)

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> Any:
        coroutine.close()
        return Call(0, lambda: None, ())

    def move_to(self, now: float) -> None:
        while due := [call for call in self.calls if call.at <= now and not call.cancelled]:
            call = min(due, key=lambda each: each.at)
            self.calls.remove(call)
            self.now = max(self.now, call.at)
            call.callback(*call.arguments)
        self.now = now


class PretendedTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.aborted = False

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True


class Owner:
    def __init__(self) -> None:
        self.opened = 0
        self.frames: list[bytes] = []
        self.lost: list[tuple[str, bool]] = []

    def link_opened(self) -> None:
        self.opened += 1

    def link_received(self, buffer: bytes, start: int, end: int) -> None:
        self.frames.append(buffer[start:end])

    def link_lost(self, why: str, *, violated: bool) -> None:
        self.lost.append((why, violated))


class Wired:
    """A link that opens after so many seconds."""

    def __init__(self, opens_after_s: float = 0) -> None:
        self.loop = PretendedLoop()
        self.owner = Owner()
        self.transport = PretendedTransport()
        self.link = Link(self.loop, self.owner, Server("zk", 2181), 5.0)  # type: ignore[arg-type]
        self.loop.move_to(100.0 + opens_after_s)
        self.link.connection_made(self.transport)


def frame(content: bytes) -> bytes:
    return struct.pack("!i", len(content)) + content


@given(st.lists(st.binary(max_size=50), max_size=8), st.data())
def test_frames_arrive_whole_however_they_are_cut(contents: list[bytes], draw: st.DataObject) -> None:
    stream = b"".join(map(frame, contents))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    wired = Wired()
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if end > begin:
            wired.link.data_received(stream[begin:end])
    assert wired.owner.frames == contents
    assert wired.owner.lost == []


@pytest.mark.parametrize("length", [-1, FRAME_LIMIT_BYTES + 1])
def test_an_impossible_length_breaks_the_connection(length: int) -> None:
    wired = Wired()
    wired.link.data_received(frame(b"good") + struct.pack("!i", length) + frame(b"never seen"))
    assert wired.owner.frames == [b"good"]
    assert wired.owner.lost == [(f"a frame of {length} bytes; the limit is {FRAME_LIMIT_BYTES}", True)]
    assert wired.transport.aborted
    assert wired.link.state is LinkState.CLOSED
    wired.link.connection_lost(None)
    assert len(wired.owner.lost) == 1


def test_the_frames_of_one_turn_go_out_in_one_write() -> None:
    wired = Wired()
    for content in (b"a", b"b", b"c"):
        wired.link.send(content)
    assert wired.transport.writes == []
    wired.loop.move_to(100.0)
    wired.link.send(b"d")
    wired.loop.move_to(100.0)
    assert wired.transport.writes == [b"abc", b"d"]


def test_no_session_in_time() -> None:
    wired = Wired()
    wired.loop.move_to(104.9)
    assert wired.owner.lost == []
    wired.loop.move_to(105.1)
    assert wired.owner.lost == [("no session within the connect timeout of 5 s", False)]


def test_the_connect_timeout_begins_anew_when_the_connection_opens() -> None:
    """ClientCnxnSocketNIO.doTransport after finishConnect, ZooKeeper 3.4.6 and 3.9.3."""
    wired = Wired(opens_after_s=4.0)
    wired.loop.move_to(108.9)
    assert wired.owner.lost == []
    wired.loop.move_to(109.1)
    assert wired.owner.lost == [("no session within the connect timeout of 5 s", False)]


def test_no_connection_in_time() -> None:
    wired = Wired(opens_after_s=5.1)
    assert wired.owner.lost == [("no connection within the connect timeout of 5 s", False)]
    assert wired.owner.opened == 0 and wired.transport.aborted


def test_heartbeats() -> None:
    """Session timeout 6 s: a ping after 2 s without sending, the end after 4 s of silence."""
    wired = Wired()
    wired.link.established(6000)
    wired.loop.move_to(101.9)
    assert wired.transport.writes == []
    wired.loop.move_to(102.1)
    assert wired.transport.writes == [PING_FRAME]
    wired.loop.move_to(103.0)
    wired.link.data_received(frame(b"pong"))
    wired.link.send(b"request")
    wired.loop.move_to(104.9)
    assert wired.transport.writes == [PING_FRAME, b"request"]
    wired.loop.move_to(106.9)
    assert wired.transport.writes == [PING_FRAME, b"request", PING_FRAME]
    assert wired.owner.lost == []
    wired.loop.move_to(107.1)
    assert wired.owner.lost == [("nothing heard for 4.000 s (read timeout 4.000 s)", False)]


def test_silence_during_a_pause_is_noticed_after_it() -> None:
    """A process that was stopped finds its timers overdue: one beat, and the link is lost."""
    wired = Wired()
    wired.link.established(6000)
    (beat,) = [call for call in wired.loop.calls if not call.cancelled]
    wired.loop.now = 105.0
    beat.callback()
    assert wired.owner.lost == [("nothing heard for 5.000 s (read timeout 4.000 s)", False)]


def test_what_came_while_the_process_was_stopped_is_lost() -> None:
    """The loop reads the socket before it looks at overdue timers; Java's client reads one length."""
    wired = Wired()
    wired.link.established(6000)
    wired.loop.now = 104.0
    wired.link.data_received(frame(b"an event") + frame(b"an answer"))
    assert wired.owner.frames == []
    assert wired.owner.lost == [("nothing heard for 4.000 s (read timeout 4.000 s)", False)]


def test_a_frame_whose_length_was_read_before_the_stop_is_read_to_its_end() -> None:
    wired = Wired()
    wired.link.established(6000)
    wired.loop.move_to(101.0)
    wired.link.data_received(struct.pack("!i", 4) + b"an")
    wired.loop.now = 105.0
    wired.link.data_received(b" e" + frame(b"more"))
    assert wired.owner.frames == [b"an e", b"more"]
    assert wired.owner.lost == []


def test_the_first_bytes_of_a_frame_end_no_silence() -> None:
    """ClientCnxnSocketNIO calls updateLastHeard when it has read a whole frame."""
    wired = Wired()
    wired.link.established(6000)
    wired.loop.move_to(103.0)
    wired.link.data_received(struct.pack("!i", 4) + b"a")
    wired.loop.move_to(104.1)
    assert wired.owner.lost == [("nothing heard for 4.000 s (read timeout 4.000 s)", False)]


def test_an_answer_that_came_after_the_connect_timeout_is_lost() -> None:
    wired = Wired()
    wired.loop.now = 105.0
    wired.link.data_received(frame(b"welcome"))
    assert wired.owner.frames == []
    assert wired.owner.lost == [("no session within the connect timeout of 5 s", False)]


def test_an_owner_that_closed_hears_no_more() -> None:
    wired = Wired()
    wired.link.send(b"unsent")
    wired.link.close()
    wired.link.close()
    wired.loop.move_to(200.0)
    wired.link.connection_lost(OSError("late"))
    assert wired.transport.aborted
    assert wired.transport.writes == []
    assert wired.owner.lost == []


def test_a_link_closed_while_dialing_takes_no_connection() -> None:
    loop, owner, transport = PretendedLoop(), Owner(), PretendedTransport()
    link = Link(loop, owner, Server("zk", 2181), 5.0)  # type: ignore[arg-type]
    link._dial.done = lambda: False
    link.close()
    link.connection_made(transport)
    assert transport.aborted
    assert owner.opened == 0
    assert link._dial.cancelled
