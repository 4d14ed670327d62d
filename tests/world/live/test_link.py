"""Framing, batching and silence of one live session's connection, on a loop that only pretends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.kernel.drivers import AsyncioDriver
from rebalance_lab.world.live.link import WRITE_BYTES, Link, LinkState
from rebalance_lab.world.live.session import LiveZooKeeperFactory
from rebalance_lab.world.ports import SessionState, WatchKind
from rebalance_lab.world.zk.codec import FRAME_LIMIT_BYTES, PING_FRAME
from rebalance_lab.world.zk.connect_string import Server
from rebalance_lab.world.zk.messages import HEARTBEAT, Connect, Connected, Fired, Operation, Request, ToClient


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


class PretendedDriver(AsyncioDriver):
    """The pretended loop's time."""

    def now_us(self) -> int:
        return round(self.loop.time() * 1e6)


def frame(content: bytes) -> bytes:
    return struct.pack("!i", len(content)) + content


def accepted(timeout_ms: int) -> bytes:
    return frame(struct.pack("!iiqi", 0, timeout_ms, 0x12, 16) + b"p" * 16)


def event(path: str) -> bytes:
    """A watched znode was created."""
    raw = path.encode()
    return frame(struct.pack("!iqiiii", -1, -1, 0, 1, 3, len(raw)) + raw)


class Owner:
    """Takes the messages of a link, and never gives it up."""

    session_id = 0

    def __init__(self) -> None:
        self.messages: list[ToClient] = []
        self.lost: list[str] = []

    def opened(self, link: Link) -> None: ...
    def woke(self, heard_us: int) -> None: ...

    def arrived(self, link: Link, message: ToClient) -> None:
        self.messages.append(message)

    def ended(self, link: Link, why: str) -> None:
        self.lost.append(why)


class Wired:
    """A link that is open."""

    def __init__(self) -> None:
        loop: Any = PretendedLoop()
        self.loop = loop
        self.owner = Owner()
        self.transport = PretendedTransport()
        kernel = Kernel(PretendedDriver(loop))
        self.link = Link(kernel, loop, self.owner, Server("zk", 2181), Connect(0, 5000, 0))
        self.link.connection_made(self.transport)
        self.turn()
        self.transport.writes.clear()  # the connect request

    def turn(self) -> None:
        self.loop.move_to(100.0)


class Timed:
    """A session with a connect timeout of 5 s, and its first link, which opens after so many seconds."""

    def __init__(self, opens_after_s: float = 0) -> None:
        loop: Any = PretendedLoop()
        self.loop = loop
        self.transport = PretendedTransport()
        kernel = Kernel(PretendedDriver(loop))
        self.session = LiveZooKeeperFactory(kernel, loop, RandomStream(1, "test", "link")).open("zk", 5000)
        link: Any = self.session._link
        self.link = link
        self.loop.move_to(100.0 + opens_after_s)
        self.link.connection_made(self.transport)
        self.loop.move_to(100.0 + opens_after_s)
        self.transport.writes.clear()  # the connect request

    def established(self) -> None:
        """Session timeout 6 s: a ping after 2 s without sending, the end after 4 s of silence."""
        self.link.data_received(accepted(6000))
        assert self.session.state is SessionState.CONNECTED

    @property
    def lost(self) -> str:
        assert (self.session.last_loss == "") is (self.link.state is not LinkState.CLOSED)
        return self.session.last_loss.removeprefix("zk:2181: ")


@given(st.lists(st.text(max_size=20).map(lambda name: "/" + name), max_size=8), st.data())
def test_frames_arrive_whole_however_they_are_cut(paths: list[str], draw: st.DataObject) -> None:
    stream = accepted(4000) + b"".join(map(event, paths))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    wired = Wired()
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if end > begin:
            wired.link.data_received(stream[begin:end])
    assert wired.owner.messages == [
        Connected(0x12, 4000, b"p" * 16),
        *(Fired(WatchKind.CREATED, path) for path in paths),
    ]
    assert wired.owner.lost == []


def test_many_bytes_are_written_before_the_turn_ends() -> None:
    """The server begins with the first requests while the next ones are made."""
    wired = Wired()
    wired.link.data_received(accepted(4000))
    large = Request(1, Operation.SET, "/a", data=bytes(WRITE_BYTES // 2), version=-1)
    wired.link.to_server(large)
    assert wired.transport.writes == []
    wired.link.to_server(large)
    assert [len(each) > WRITE_BYTES for each in wired.transport.writes] == [True]
    wired.link.to_server(HEARTBEAT)
    wired.turn()
    assert wired.transport.writes[1:] == [PING_FRAME]


@pytest.mark.parametrize("length", [-1, FRAME_LIMIT_BYTES + 1])
def test_an_impossible_length_breaks_the_connection(length: int) -> None:
    wired = Wired()
    wired.link.data_received(accepted(4000) + event("/good") + struct.pack("!i", length) + event("/never-seen"))
    assert wired.owner.messages[1:] == [Fired(WatchKind.CREATED, "/good")]
    assert wired.owner.lost == [f"a frame of {length} bytes; the limit is {FRAME_LIMIT_BYTES}"]
    assert wired.transport.aborted
    assert wired.link.state is LinkState.CLOSED
    wired.link.connection_lost(None)
    assert len(wired.owner.lost) == 1


def test_the_frames_of_one_turn_go_out_in_one_write() -> None:
    wired = Wired()
    for _ in range(3):
        wired.link.to_server(HEARTBEAT)
    assert wired.transport.writes == []
    wired.turn()
    wired.link.to_server(HEARTBEAT)
    wired.turn()
    assert wired.transport.writes == [PING_FRAME * 3, PING_FRAME]


def test_no_session_in_time() -> None:
    timed = Timed()
    timed.loop.move_to(104.9)
    assert timed.lost == ""
    timed.loop.move_to(105.1)
    assert timed.lost == "no session within the connect timeout of 5 s"


def test_the_connect_timeout_begins_anew_when_the_connection_opens() -> None:
    """ClientCnxnSocketNIO.doTransport after finishConnect, ZooKeeper 3.4.6 and 3.9.3."""
    timed = Timed(opens_after_s=4.0)
    timed.loop.move_to(108.9)
    assert timed.lost == ""
    timed.loop.move_to(109.1)
    assert timed.lost == "no session within the connect timeout of 5 s"


def test_no_connection_in_time() -> None:
    timed = Timed(opens_after_s=5.1)
    assert timed.lost == "no connection within the connect timeout of 5 s"
    assert timed.transport.writes == [] and timed.transport.aborted


def test_heartbeats() -> None:
    timed = Timed()
    timed.established()
    timed.loop.move_to(101.9)
    assert timed.transport.writes == []
    timed.loop.move_to(102.1)
    assert timed.transport.writes == [PING_FRAME]
    timed.loop.move_to(103.0)
    timed.link.data_received(frame(struct.pack("!iqi", -2, 0, 0)))  # the answer
    timed.session.get("/a")
    timed.loop.move_to(104.9)
    assert len(timed.transport.writes) == 2  # that, and the request
    timed.loop.move_to(106.9)
    assert timed.transport.writes[2:] == [PING_FRAME]
    assert timed.lost == ""
    timed.loop.move_to(107.1)
    assert timed.lost == "nothing heard for 4.000 s (read timeout 4.000 s)"


def test_silence_during_a_pause_is_noticed_after_it() -> None:
    """A process that was stopped finds its timers overdue: one beat, and the link is lost."""
    timed = Timed()
    timed.established()
    timed.loop.now = 105.0
    timed.loop.move_to(105.0)
    assert timed.lost == "nothing heard for 5.000 s (read timeout 4.000 s)"


def test_what_came_while_the_process_was_stopped_is_lost() -> None:
    """The loop reads the socket before it looks at overdue timers; Java's client reads one length."""
    timed = Timed()
    timed.established()
    fired = timed.session.exists("/a", watch=True)
    timed.loop.now = 104.0
    timed.link.data_received(event("/an-event") + frame(struct.pack("!iqi", 1, 7, -101)))
    assert fired.error is not None
    assert timed.lost == "nothing heard for 4.000 s (read timeout 4.000 s)"


def test_a_frame_whose_length_was_read_before_the_stop_is_read_to_its_end() -> None:
    timed = Timed()
    timed.established()
    missing, behind = timed.session.exists("/a"), timed.session.exists("/b")
    timed.loop.move_to(101.0)
    answers = frame(struct.pack("!iqi", 1, 7, -101)) + frame(struct.pack("!iqi", 2, 7, -101))
    timed.link.data_received(answers[:6])
    timed.loop.now = 105.0
    timed.link.data_received(answers[6:])
    assert missing.result().value is None
    assert behind.result().value is None
    assert timed.lost == ""


def test_the_first_bytes_of_a_frame_end_no_silence() -> None:
    """ClientCnxnSocketNIO calls updateLastHeard when it has read a whole frame."""
    timed = Timed()
    timed.established()
    timed.loop.move_to(103.0)
    timed.link.data_received(struct.pack("!i", 4) + b"a")
    timed.loop.move_to(104.1)
    assert timed.lost == "nothing heard for 4.000 s (read timeout 4.000 s)"


def test_an_answer_that_came_after_the_connect_timeout_is_lost() -> None:
    timed = Timed()
    timed.loop.now = 105.0
    timed.link.data_received(accepted(6000))
    assert timed.session.state is SessionState.CONNECTING
    assert timed.lost == "no session within the connect timeout of 5 s"


def test_an_owner_that_closed_hears_no_more() -> None:
    wired = Wired()
    wired.link.to_server(HEARTBEAT)
    wired.link.leave_as_client()
    wired.link.leave_as_client()
    wired.loop.move_to(200.0)
    wired.link.connection_lost(OSError("late"))
    assert wired.transport.aborted
    assert wired.transport.writes == []
    assert wired.owner.lost == []


def test_a_link_closed_while_dialing_takes_no_connection() -> None:
    loop: Any = PretendedLoop()
    owner, transport = Owner(), PretendedTransport()
    link: Any = Link(Kernel(PretendedDriver(loop)), loop, owner, Server("zk", 2181), Connect(0, 5000, 0))
    link._dial.done = lambda: False
    link.leave_as_client()
    link.connection_made(transport)
    assert transport.aborted
    assert not link.accepted
    assert link._dial.cancelled
