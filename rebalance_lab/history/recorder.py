"""Recorders, which write the events.

There is one write for each event, to a file opened with O_APPEND. So kill -9 loses nothing that was written, and a
recorder that stalls does not delay others.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import msgspec

from rebalance_lab.history.disk import no_space
from rebalance_lab.history.events import Event, EventId, Kind, Layer, decode, encode, session_text
from rebalance_lab.history.files import HistoryError
from rebalance_lab.kernel import Kernel


class RecorderFailed(BaseException):
    """An event could not be written. The run must end, because a history with a gap would be worse than none. So this
    is a BaseException: members, as in Kafka, survive any Exception in a rebalance."""


class Sink(Protocol):
    """Where events go."""

    def write(self, event: Event) -> None: ...


class MemorySink:
    """Events in a list, for the simulator and for tests."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.write = self.events.append


class FileSink:
    """Events in a JSON-lines file, one write each.

    Raises OSError if the file cannot be opened, or if a write fails or is incomplete: then the disk is full.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def write(self, event: Event) -> None:
        line = encode(event) + b"\n"
        if os.write(self._descriptor, line) != len(line):  # there was space for a part of it
            raise no_space(self.path)

    def close(self) -> None:
        os.close(self._descriptor)


def next_number(path: Path) -> int:
    """The number of the next event in an actor's file: one more than its last, 0 without a file. An actor that is
    started again goes on counting. A last line that was cut off is removed first, because readers ignore it and the
    next event must not be appended to it. Raises HistoryError for a file whose last whole line is not an event."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return 0
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    lines = whole.splitlines()
    try:
        return decode(lines[-1]).n + 1 if lines else 0
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: its last line is not an event: {error}") from error


class Recorder:
    """One actor's recorder (the port `world.ports.RecorderPort`). `next_n`: the number of the next event.

    After its kernel is closed it writes nothing: clean-up that runs then does not belong to the history.
    """

    def __init__(self, actor: str, kernel: Kernel, sink: Sink, *, next_n: int = 0) -> None:
        self.actor = actor
        self.next_n = next_n
        self._kernel = kernel
        self._sink = sink

    def emit(
        self,
        layer: Layer,
        kind: Kind,
        *,
        member: str | None = None,
        session: int | None = None,
        group: str | None = None,
        generation: int | None = None,
        topic: str | None = None,
        partition: int | None = None,
        epoch: int | None = None,
        zxid: int | None = None,
        detail: dict[str, object] | None = None,
    ) -> EventId:
        kernel = self._kernel
        n = self.next_n
        if kernel.closed:
            return (self.actor, n)
        self.next_n = n + 1
        event = Event(
            actor=self.actor,
            n=n,
            at_us=kernel.now_us(),
            layer=layer,
            kind=kind,
            member=member,
            session=None if session is None else session_text(session),
            group=group,
            generation=generation,
            topic=topic,
            partition=partition,
            epoch=epoch,
            zxid=zxid,
            cause=kernel.cause,
            detail=detail,
        )
        try:
            self._sink.write(event)
        except Exception as error:
            raise RecorderFailed(f"{self.actor} could not record event {n} ({kind}): {error}") from error
        return (self.actor, n)
