"""The port `world.storage` in the simulator: operations on a simulated disk, in virtual time.

The disk belongs to no process: an operation that was begun is carried out although the process is paused. Only its
answer waits, and with it what was asked after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from rebalance_lab.kernel import Future, Kernel, Process, ProcessState
from rebalance_lab.kernel.drivers import HeapDriver
from rebalance_lab.world.simulated.disk import DiskFile, DiskSettings, SimulatedDisk
from rebalance_lab.world.storage import (
    File,
    FileBusy,
    FileClosed,
    Listing,
    StorageError,
    check_range,
    file_parts,
    parts_of,
)

T = TypeVar("T")


@dataclass(slots=True)
class _Operation:
    """`effect`: what it does to the disk; `torn`: what it does if its process is killed meanwhile."""

    future: Future[Any]
    cost_us: int
    effect: Callable[[], Any]
    torn: Callable[[], object]
    done: bool = False


class _Lane:
    """Operations that are carried out one after another."""

    def __init__(self, storage: SimulatedStorage) -> None:
        self._storage = storage
        self._operations: list[_Operation] = []  # an empty deque is not small, and most actors keep no files

    def ask(
        self, label: str, path: str, cost_us: int, effect: Callable[[], T], torn: Callable[[], object] | None = None
    ) -> Future[T]:
        """`torn`: left out, the effect as a whole happens, or does not."""
        future: Future[T] = Future((label, path))
        future.cause = self._storage.kernel.cause
        operation = _Operation(future, cost_us, effect, torn or partial(self._storage.perhaps, effect))
        self._operations.append(operation)
        if len(self._operations) == 1:
            self._storage.begin(self, operation)
        return future

    def carry_out(self, operation: _Operation) -> None:
        """Called when its time has passed."""
        if operation.done:
            return
        operation.done = True
        value, error = None, None
        try:
            value = operation.effect()
        except StorageError as failed:
            error = failed
        self._storage.process.deliver(partial(self._answer, operation.future, value, error))

    def _answer(self, future: Future[Any], value: object, error: StorageError | None) -> None:
        self._operations.pop(0)
        if self._operations:
            self._storage.begin(self, self._operations[0])
        if error is None:
            future.set(value)
        else:
            future.fail(error)

    def tear(self) -> None:
        """The process was killed: what was begun is done, in part or not at all, and nothing else."""
        if self._operations and not self._operations[0].done:
            self._operations[0].done = True
            self._operations[0].torn()


class SimulatedStorage:
    """The port `world.storage.Storage` for one life of an actor, in `process`. `disk`: the actor's."""

    def __init__(self, kernel: Kernel, process: Process, disk: SimulatedDisk) -> None:
        assert isinstance(kernel.driver, HeapDriver), "a simulated disk runs on virtual time"
        self.kernel = kernel
        self.process = process
        self.disk = disk
        self._driver = kernel.driver
        self._names = _Lane(self)
        self._open: dict[DiskFile, _Lane] = {}
        process.on_change(self._process_changed)

    def open(self, path: str, *, create: bool = False) -> Future[File]:
        file_parts(path)
        return self._ask("open", path, partial(self._opened, path, create))

    def _opened(self, path: str, create: bool) -> File:
        file = self.disk.open(path, create=create)
        if file in self._open:
            raise FileBusy("open", path)
        lane = self._open[file] = _Lane(self)
        return SimulatedFile(self, lane, path, file)

    def rename(self, old: str, new: str) -> Future[None]:
        file_parts(old)
        file_parts(new)
        return self._ask("rename", f"{old} to {new}", partial(self.disk.rename, old, new))

    def delete(self, path: str) -> Future[None]:
        file_parts(path)
        return self._ask("delete", path, partial(self.disk.delete, path))

    def list(self, folder: str = "") -> Future[Listing]:
        parts_of(folder)
        return self._ask("list", folder, partial(self.disk.listing, folder))

    def make_folder(self, folder: str) -> Future[None]:
        parts_of(folder)
        return self._ask("make folder", folder, partial(self.disk.make_folder, folder))

    def sync_folder(self, folder: str = "") -> Future[None]:
        parts_of(folder)
        cost_us = self.between(self.disk.settings.sync_us)
        return self._names.ask("sync folder", folder, cost_us, partial(self.disk.sync_folder, folder))

    def _ask(self, label: str, path: str, effect: Callable[[], T]) -> Future[T]:
        return self._names.ask(label, path, self.between(self.disk.settings.name_us), effect)

    # -- for lanes and files ----------------------------------------------------------------

    def begin(self, lane: _Lane, operation: _Operation) -> None:
        self._driver.post(self._driver.time_us + operation.cost_us, lane.carry_out, operation)

    def between(self, span_us: tuple[int, int]) -> int:
        low, high = span_us
        return low + self.disk.stream.below(high - low + 1)

    def perhaps(self, effect: Callable[[], object]) -> None:
        if self.disk.stream.below(2):
            try:
                effect()
            except StorageError:
                return  # nobody is there to be told

    def closed(self, file: DiskFile) -> None:
        self._open.pop(file)

    def _process_changed(self, state: ProcessState) -> None:
        if state is ProcessState.KILLED:
            for lane in (self._names, *self._open.values()):
                lane.tear()


class SimulatedFile:
    """The port `world.storage.File`."""

    def __init__(self, storage: SimulatedStorage, lane: _Lane, path: str, file: DiskFile) -> None:
        self.path = path
        self._storage = storage
        self._lane = lane
        self._file = file
        self._closed = False

    @property
    def size(self) -> int:
        return len(self._file.data)

    def pread(self, offset: int, length: int) -> Future[bytes]:
        check_range(offset, length)
        cost_us = self._storage.between(self._settings.read_us) + length // self._settings.bytes_per_us
        return self._ask("read", cost_us, lambda: bytes(self._file.data[offset : offset + length]))

    def append(self, data: bytes) -> Future[int]:
        cost_us = self._storage.between(self._settings.write_us) + len(data) // self._settings.bytes_per_us
        return self._ask("append", cost_us, partial(self._write, data), partial(self._tear, data))

    def truncate(self, length: int) -> Future[None]:
        check_range(0, length)
        return self._ask(
            "truncate", self._storage.between(self._settings.write_us), partial(self._file.truncate, length)
        )

    def sync(self) -> Future[None]:
        return self._ask("sync", self._storage.between(self._settings.sync_us), self._file.sync)

    def close(self) -> Future[None]:
        return self._lane.ask("close", self.path, 0, self._close)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._storage.closed(self._file)

    @property
    def _settings(self) -> DiskSettings:
        return self._storage.disk.settings

    def _write(self, data: bytes) -> int:
        return self._storage.disk.append(self._file, self.path, data)

    def _tear(self, data: bytes) -> None:
        """The process was killed in the middle of an append."""
        self._storage.perhaps(partial(self._write, data[: self._storage.disk.stream.below(len(data) + 1)]))

    def _ask(
        self, label: str, cost_us: int, effect: Callable[[], T], torn: Callable[[], object] | None = None
    ) -> Future[T]:
        def unless_closed() -> T:
            if self._closed:
                raise FileClosed(label, self.path)
            return effect()

        return self._lane.ask(label, self.path, cost_us, unless_closed, torn)
