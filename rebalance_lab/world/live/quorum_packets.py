"""What a ZooKeeper leader sends to a follower, cut into packets.

QuorumPacket (zookeeper.jute, 3.4 to 3.9): type (int32), zxid (int64), data (a buffer), and a
vector of ids (scheme, id). Behind a SNAP packet lies the snapshot itself, without a length; it
ends with a signature.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple


class PacketType(IntEnum):
    """Those of Leader.java that matter here; others are passed on."""

    PROPOSAL = 2
    PING = 5
    REVALIDATE = 6
    UPTODATE = 12
    SNAP = 15


SNAPSHOT_END = b"\0\0\0\x0aBenWasHere"

#: No packet is longer: a proposal holds one request (1 MB), a ping's sessions have 12 bytes each.
PACKET_LIMIT_BYTES = 1 << 26

_HEAD = struct.Struct("!iqi")  # type, zxid, length of the data
_INT = struct.Struct("!i")
_IDS_LIMIT = 1000


class QuorumProtocolError(Exception):
    """Bytes that no ZooKeeper leader sends."""


class Packet(NamedTuple):
    """`type` is None for bytes of a snapshot."""

    type: int | None
    data: bytes


class PacketSplitter:
    """Bytes in, whole packets out."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._in_snapshot = False

    def feed(self, data: bytes) -> list[Packet]:
        """What is whole now; all bytes come out again, in order. Raises QuorumProtocolError."""
        self._buffer += data
        found: list[Packet] = []
        while (length := self._next_length()) > 0:
            whole = bytes(self._buffer[:length])
            del self._buffer[:length]
            if self._in_snapshot:
                self._in_snapshot = not whole.endswith(SNAPSHOT_END)
                found.append(Packet(None, whole))
            else:
                (kind,) = _INT.unpack_from(whole)
                self._in_snapshot = kind == PacketType.SNAP
                found.append(Packet(kind, whole))
        return found

    def _next_length(self) -> int:
        """How many bytes make up the next packet, or the next piece of a snapshot; 0: not yet whole."""
        if not self._in_snapshot:
            return _packet_length(self._buffer)
        end = self._buffer.find(SNAPSHOT_END)
        if end >= 0:
            return end + len(SNAPSHOT_END)
        return max(0, len(self._buffer) - len(SNAPSHOT_END) + 1)  # the rest may begin the signature


def _packet_length(buffer: bytearray) -> int:
    if len(buffer) < _HEAD.size:
        return 0
    kind, _, data_length = _HEAD.unpack_from(buffer)
    if not -1 <= data_length <= PACKET_LIMIT_BYTES:
        raise QuorumProtocolError(f"a packet of type {kind} with {data_length} bytes of data")
    offset = _HEAD.size + max(0, data_length)
    if len(buffer) < offset + _INT.size:
        return 0
    (ids,) = _INT.unpack_from(buffer, offset)
    if not -1 <= ids <= _IDS_LIMIT:
        raise QuorumProtocolError(f"a packet of type {kind} with {ids} ids")
    offset += _INT.size
    for _ in range(2 * max(0, ids)):  # scheme and id of each
        if len(buffer) < offset + _INT.size:
            return 0
        offset += _INT.size + max(0, _INT.unpack_from(buffer, offset)[0])
    return offset if len(buffer) >= offset else 0
