"""Client libraries that others wrote, for futures of the kernel: one partition, an idempotent producer, and a read of
everything.

Their calls block, so a thread of its own makes them. Their callbacks come in threads, too, and complete futures on the
loop.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, TypeVar

from rebalance_lab.kernel import Future, Kernel

T = TypeVar("T")

#: How long a call of a library may block.
LIMIT_S = 60.0

#: The longest time between two calls of `work`.
WORK_S = 0.01

#: How soon it connects again to a broker that has gone, at the latest.
RECONNECT_MS = 500

#: How old its list of brokers and leaders may be. Brokers of a trial may come back at another address.
METADATA_MS = 2_000

#: How long a library tries to deliver a record, longer than any fault lasts.
DELIVERY_TIMEOUT_MS = 120_000


class OutsideError(Exception):
    """The library gave a write or a read up. A write may have been done all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideSettings:
    """`acks`: -1 (all, idempotent) or 1 (of the leader, not idempotent)."""

    bootstrap: Sequence[str]
    topic: str
    partition: int
    request_timeout_ms: int
    acks: int = -1

    @property
    def idempotent(self) -> bool:
        return self.acks == -1


#: Takes the offset of a write, None if the answer names none, or the error.
Delivered = Callable[[int | None, Exception | None], None]


class Library(Protocol):
    """One library. Its methods block, and one thread calls them all. They raise OutsideError."""

    def send(self, value: bytes, delivered: Delivered) -> None:
        """Hand a record over. `delivered` is called later, in any thread."""
        ...

    def work(self) -> None:
        """Let the library call back."""
        ...

    def read(self) -> list[tuple[int, bytes]]:
        """The offset and the value of each record of the partition."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Installed:
    """`package`: what must be installed. `module`: of ours, whose `LIBRARY` makes a Library from settings."""

    package: str
    module: str


#: By the names under which they are installed. They are no dependencies of the lab.
LIBRARIES = {
    "confluent-kafka": Installed("confluent_kafka", "rebalance_lab.world.outside.librdkafka"),
    "kafka-python": Installed("kafka", "rebalance_lab.world.outside.kafka_python"),
}


def library(name: str, settings: OutsideSettings) -> Library:
    """Raises ModuleNotFoundError."""
    made: Library = import_module(LIBRARIES[name].module).LIBRARY(settings)
    return made


def known(offset: int | None) -> int | None:
    """An answer to a repeated batch may name no offset."""
    return offset if offset is not None and offset >= 0 else None


class OutsideClient:
    """A library in a thread. Made and used on the loop of the kernel; close it with `close`."""

    def __init__(self, kernel: Kernel, make: Callable[[], Library]) -> None:
        self._kernel = kernel
        self._loop = asyncio.get_running_loop()
        self._asked: queue.SimpleQueue[Callable[[Library], None]] = queue.SimpleQueue()
        self._ended = False
        threading.Thread(target=self._run, args=(make,), name="client library", daemon=True).start()

    def send(self, value: bytes) -> Future[int | None]:
        """Write a record. The future has its offset, None if the answer names none; or fails with OutsideError."""
        future: Future[int | None] = Future("a write of the client library")

        def delivered(offset: int | None, error: Exception | None) -> None:
            if error is None:
                self._loop.call_soon_threadsafe(future.set, offset)
            else:
                self._loop.call_soon_threadsafe(future.fail, error)

        self._asked.put(lambda library: library.send(value, delivered))
        return future

    def read(self) -> Future[list[tuple[int, bytes]]]:
        """The offset and the value of each record of the partition. Fails with OutsideError."""
        return self._ask(lambda library: library.read(), "a read of the client library")

    def close(self) -> Future[None]:
        """Deliver what is under way, and end the thread."""

        def end(library: Library) -> None:
            self._ended = True
            library.close()

        return self._ask(end, "the close of the client library")

    def _ask(self, call: Callable[[Library], T], what: str) -> Future[T]:
        future: Future[T] = Future(what)

        def work(library: Library) -> None:
            try:
                result = call(library)
            except Exception as error:
                self._loop.call_soon_threadsafe(future.fail, error)
            else:
                self._loop.call_soon_threadsafe(future.set, result)

        self._asked.put(work)
        return future

    def _run(self, make: Callable[[], Library]) -> None:
        try:
            self._work(make())
        except Exception as error:
            self._loop.call_soon_threadsafe(self._failed, error)

    def _failed(self, error: Exception) -> None:
        """On the loop, where it ends the process."""
        raise error

    def _work(self, library: Library) -> None:
        while not self._ended:
            try:
                work = self._asked.get(timeout=WORK_S)
            except queue.Empty:
                pass
            else:
                work(library)
            library.work()
