"""Messages to bytes and back, for each version in which Kafka 3.9.1 knows them.

What reads and writes one version of a message is compiled when it is first asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from struct import Struct
from types import FrameType
from typing import Any, Generic, TypeVar, cast

from rebalance_lab.wire.kafka import reading, writing
from rebalance_lab.wire.kafka.errors import MalformedMessage, UnsupportedVersion, UnwritableMessage
from rebalance_lab.wire.kafka.primitives import MOST_ITEMS, Invalid
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.wire.kafka.source import Line, Source

M = TypeVar("M", bound=Message)

#: What the compiled functions raise for bytes that they cannot read, and for values that they cannot write.
_UNREADABLE = (Invalid, IndexError, struct.error)
_UNWRITABLE = (Invalid, AttributeError, OverflowError, TypeError, struct.error, UnicodeEncodeError)

_CODECS: dict[tuple[type[Message], int], Codec[Any]] = {}


def codec(message: type[M], version: int) -> Codec[M]:
    """The codec of one version. Raises UnsupportedVersion."""
    found = _CODECS.get((message, version))
    if found is None:
        if version not in message.VERSIONS:
            raise UnsupportedVersion(message.__name__, version, *message.VERSIONS)
        found = _CODECS[message, version] = Codec(message, version)
    return cast("Codec[M]", found)


class Codec(Generic[M]):
    """Reads and writes one version of one message."""

    def __init__(self, message: type[M], version: int) -> None:
        self.message = message
        self.version = version

    def __repr__(self) -> str:
        return f"<Codec {self.message.__name__} version {self.version}>"

    def encode(self, message: M, head: bytes = b"") -> bytes:
        """The message's bytes behind `head`. Raises UnwritableMessage: this version lacks a field that is set, or a
        field cannot hold its value."""
        pieces = [head]
        try:
            self._writer[0](message, pieces.append)
        except _UNWRITABLE as error:
            raise self._unwritable(error) from None
        return b"".join(pieces)

    def decode(self, data: bytes, offset: int = 0) -> M:
        """The message that fills `data` from `offset` to its end. Raises MalformedMessage."""
        message, end = self.read(data, offset)
        if end != len(data):
            raise MalformedMessage(
                self.message.__name__, self.version, "", end, f"{len(data) - end} bytes follow the message"
            )
        return message

    def read(self, data: bytes, offset: int = 0) -> tuple[M, int]:
        """The message that begins at `offset`, and the position after it. Raises MalformedMessage."""
        try:
            return cast("tuple[M, int]", self._reader[0](data, offset, len(data), [MOST_ITEMS]))
        except _UNREADABLE as error:
            raise self._malformed(error) from None

    # -- the compiled functions -------------------------------------------------------------

    @cached_property
    def _reader(self) -> tuple[Callable[..., Any], Source]:
        source = self._source("reader", reading.NAMESPACE)
        return source.compiled(reading.Reader(source).function(self.message)), source

    @cached_property
    def _writer(self) -> tuple[Callable[..., Any], Source]:
        source = self._source("writer", writing.NAMESPACE)
        return source.compiled(writing.Writer(source).function(self.message)), source

    def _source(self, what: str, namespace: dict[str, Any]) -> Source:
        file = f"<{what} of {self.message.__name__} version {self.version}>"
        return Source(file, self.version, self.version in self.message.FLEXIBLE, dict(namespace))

    # -- errors -----------------------------------------------------------------------------

    def _malformed(self, error: Exception) -> MalformedMessage:
        path: list[str] = []
        at = 0
        for line, frame in self._reader[1].steps(error.__traceback__):
            at = frame.f_locals["p"]
            name = line.parts[0].field if line.parts else ""
            if isinstance(error, struct.error):
                name, at = _beyond(line, at, frame.f_locals["e"]) or (name, at)
            path.append(name if line.items is None else f"{name}[{len(frame.f_locals[line.items])}]")
        reason = "the bytes end here" if isinstance(error, IndexError | struct.error) else str(error)
        return MalformedMessage(self.message.__name__, self.version, ".".join(path), at, reason)

    def _unwritable(self, error: Exception) -> UnwritableMessage:
        path: list[str] = []
        for line, frame in self._writer[1].steps(error.__traceback__):
            name = _refused(line, frame) if isinstance(error, struct.error) else line.parts[0].field
            if line.items is not None:
                name += f"[{_position(frame.f_locals[line.items], frame.f_locals['i'])}]"
            path.append(name)
        return UnwritableMessage(self.message.__name__, self.version, ".".join(path), str(error))


def _beyond(line: Line, at: int, end: int) -> tuple[str, int] | None:
    """(name, position) of the first value of this line that the bytes do not hold."""
    for part in line.parts:
        size = struct.calcsize(f">{part.layout}")
        if at + size > end:
            return part.field, at
        at += size
    return None


def _refused(line: Line, frame: FrameType) -> str:
    """The field of this line whose value does not fit its layout."""
    for part in line.parts[:-1]:
        try:
            Struct(f">{part.layout}").pack(eval(part.value, frame.f_globals, frame.f_locals))
        except struct.error:
            return part.field
    return line.parts[-1].field


def _position(items: Any, item: Any) -> int:
    return next(n for n, each in enumerate(items) if each is item)
