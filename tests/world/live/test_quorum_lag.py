"""What a leader sends, cut into packets, and what of it is held back."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.world.live.quorum_lag import LagSeen, QuorumLag
from rebalance_lab.world.live.quorum_packets import SNAPSHOT_END, Packet, PacketSplitter, QuorumProtocolError
from rebalance_lab.world.live.reserved_port import HOST

DIFF, PROPOSAL, COMMIT, PING, REVALIDATE, SYNC, NEWLEADER, UPTODATE, SNAP = 13, 2, 4, 5, 6, 7, 10, 12, 15


def packet(kind: int, data: bytes | None = None, ids: tuple[tuple[bytes, bytes], ...] | None = None) -> bytes:
    body = struct.pack("!iq", kind, 7)
    body += struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data
    if ids is None:
        return body + struct.pack("!i", -1)
    texts = [struct.pack("!i", len(text)) + text for each in ids for text in each]
    return body + struct.pack("!i", len(ids)) + b"".join(texts)


PACKETS = [
    packet(DIFF),
    packet(PROPOSAL, b"p" * 300, ids=((b"ip", b"127.0.0.1"), (b"world", b""))),
    packet(SNAP),
    b"a snapshot \0\0\0\x0aBenWasThere" + b"s" * 100 + SNAPSHOT_END,
    packet(NEWLEADER, b"", ids=()),
    packet(PING, b"1234"),
]


@given(st.lists(st.integers(1, 60), min_size=1))
def test_packets_are_whole_however_they_come(steps: list[int]) -> None:
    stream, splitter = b"".join(PACKETS), PacketSplitter()
    found: list[Packet] = []
    at, turn = 0, 0
    while at < len(stream):
        size = steps[turn % len(steps)]
        found += splitter.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert b"".join(each.data for each in found) == stream
    whole = [each for each in found if each.type is not None]
    assert [each.data for each in whole] == [each for each in PACKETS if not each.startswith(b"a snapshot")]
    assert [each.type for each in whole] == [DIFF, PROPOSAL, SNAP, NEWLEADER, PING]


@pytest.mark.parametrize(
    ("noise", "why"),
    [
        (struct.pack("!iqi", 2, 0, 1 << 30), "type 2 with 1073741824 bytes"),
        (struct.pack("!iqi", 2, 0, -2), "type 2 with -2 bytes"),
        (struct.pack("!iqii", 2, 0, -1, 5000), "type 2 with 5000 ids"),
    ],
)
def test_what_no_leader_sends(noise: bytes, why: str) -> None:
    with pytest.raises(QuorumProtocolError, match=why):
        PacketSplitter().feed(noise)


# -- a leader and a follower of our own ----------------------------------------------------------


class Pair:
    """Both ends of one connection through the proxy."""

    def __init__(self, lag: QuorumLag) -> None:
        self.lag = lag
        with socket.create_server((HOST, 0)) as quorum:
            quorum.settimeout(10)
            self.follower = socket.create_connection((HOST, lag.add("z1", quorum.getsockname()[1])), timeout=10)
            self.leader, _ = quorum.accept()
        self.follower.settimeout(10)

    def received(self, length: int) -> bytes:
        parts = b""
        while len(parts) < length:
            part = self.follower.recv(length - len(parts))
            assert part, f"the connection ended behind {parts!r}"
            parts += part
        return parts

    def close(self) -> None:
        self.follower.close()
        self.leader.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    lag = QuorumLag()
    pair = Pair(lag)
    yield pair
    pair.close()
    lag.close()
    lag.close()  # again is harmless


def test_commits_wait_and_proposals_pings_and_revalidations_pass(pair: Pair) -> None:
    pair.leader.sendall(packet(NEWLEADER) + packet(UPTODATE))
    pair.received(len(packet(NEWLEADER) + packet(UPTODATE)))
    pair.lag.set_delay("z1", 600_000)
    late = packet(COMMIT) + packet(SYNC)
    early = packet(PROPOSAL, b"x") + packet(PING) + packet(REVALIDATE, b"y")
    pair.leader.sendall(
        packet(COMMIT) + packet(PROPOSAL, b"x") + packet(SYNC) + packet(PING) + packet(REVALIDATE, b"y")
    )
    assert pair.received(len(early)) == early
    assert pair.lag.seen("z1") == LagSeen(delay_ms=600_000, held=2, delayed=0, following=True)
    pair.lag.set_delay("z1", 0)
    assert pair.received(len(late)) == late
    assert pair.lag.seen("z1") == LagSeen(delay_ms=0, held=0, delayed=2, following=True)


def test_a_commit_comes_after_its_delay(pair: Pair) -> None:
    pair.leader.sendall(packet(UPTODATE))
    pair.received(len(packet(UPTODATE)))
    pair.lag.set_delay("z1", 200)
    sent_at = time.monotonic()
    pair.leader.sendall(packet(COMMIT) * 3)
    assert pair.received(3 * len(packet(COMMIT))) == packet(COMMIT) * 3
    assert time.monotonic() - sent_at >= 0.2


def test_nothing_is_held_before_a_follower_is_up_to_date(pair: Pair) -> None:
    pair.lag.set_delay("z1", 600_000)
    sync = packet(SNAP) + b"snapshot" + SNAPSHOT_END + packet(PROPOSAL) + packet(COMMIT) + packet(UPTODATE)
    assert not pair.lag.seen("z1").following
    pair.leader.sendall(sync)
    assert pair.received(len(sync)) == sync
    assert pair.lag.seen("z1").following


def test_the_other_direction_is_never_held(pair: Pair) -> None:
    pair.lag.set_delay("z1", 600_000)
    pair.follower.sendall(b"acknowledged")
    assert pair.leader.recv(100) == b"acknowledged"


def test_an_end_is_passed_on_at_once(pair: Pair) -> None:
    pair.leader.sendall(packet(UPTODATE))
    pair.received(len(packet(UPTODATE)))
    pair.lag.set_delay("z1", 600_000)
    pair.leader.sendall(packet(COMMIT) + packet(PING))
    pair.received(len(packet(PING)))
    pair.leader.close()
    assert pair.follower.recv(1) == b""  # and what was held never arrives
    assert pair.lag.seen("z1") == LagSeen(delay_ms=600_000, held=0, delayed=0, following=False)
    with pytest.raises(KeyError):
        pair.lag.seen("z2")


def test_a_leader_that_does_not_listen_yet_is_waited_for() -> None:
    lag = QuorumLag()
    with socket.socket() as late:
        late.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        late.bind((HOST, 0))
        with socket.create_connection((HOST, lag.add("z1", late.getsockname()[1])), timeout=10) as follower:
            follower.sendall(b"here")
            lag.seen("z1")  # the proxy's loop has turned since
            late.listen()
            late.settimeout(10)
            leader, _ = late.accept()
            with leader:
                leader.settimeout(10)
                assert leader.recv(4) == b"here"
            lag.close()


def test_a_node_that_is_refused_connects_nowhere_anew_and_keeps_what_it_has(pair: Pair) -> None:
    with socket.create_server((HOST, 0)) as other:
        other.settimeout(10)
        port = other.getsockname()[1]
        quorum, election = pair.lag.add("z1", port), pair.lag.forward("z1", port, host=HOST, listen=HOST)
        of_another = pair.lag.add("z3", port)
        pair.lag.refuse("z1", refused=True)
        for proxy in (quorum, election):
            with socket.create_connection((HOST, proxy), timeout=10) as refused:
                assert ended(refused)
        assert pair.lag.seen("z1").refused == 2
        pair.leader.sendall(packet(PING))
        assert pair.received(len(packet(PING))) == packet(PING)
        assert leads_on(of_another, other)
        pair.lag.refuse("z1", refused=False)
        assert leads_on(quorum, other)
        assert leads_on(election, other)


def leads_on(proxy: int, leader: socket.socket) -> bool:
    with socket.create_connection((HOST, proxy), timeout=10) as follower:
        accepted, _ = leader.accept()
        with accepted:
            accepted.sendall(packet(PING))
            return follower.recv(64) == packet(PING)


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
