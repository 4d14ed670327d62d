"""Random operations on a disk, beside a model of a few lines: the same answers in both worlds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from conformance_storage import LiveStorageHarness, SimulatedStorageHarness, StorageHarness
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from rebalance_lab.kernel import Future
from rebalance_lab.world.storage import (
    File,
    FileBusy,
    FolderNotEmpty,
    IsAFolder,
    Listing,
    NoSuchFile,
    NotAFolder,
    StorageError,
    StorageFailure,
)

paths = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "a/x"])
payloads = st.sampled_from([b"", b"1", b"22", b"4444"])
lengths = st.integers(0, 8)


class Content:
    """Of a file, whatever its name."""

    def __init__(self) -> None:
        self.data = b""


Tree = dict[str, Content | None]  # None: a folder


class Model:
    """What the names stand for. Raises the errors that the port fails with."""

    def __init__(self) -> None:
        self.tree: Tree = {"": None}

    def above(self, path: str, shown: str) -> None:
        """The folder that a path stands in must be there."""
        parts = path.split("/")[:-1]
        for count in range(len(parts) + 1):
            folder = "/".join(parts[:count])
            if folder not in self.tree:
                raise NoSuchFile("", shown)
            if self.tree[folder] is not None:
                raise NotAFolder("", shown)

    def below(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        return [path for path in self.tree if path and path.startswith(prefix)]

    def is_folder(self, path: str) -> bool:
        return path in self.tree and self.tree[path] is None

    def open(self, path: str, create: bool) -> Content:
        self.above(path, path)
        if self.is_folder(path):
            raise IsAFolder("", path)
        if path not in self.tree:
            if not create:
                raise NoSuchFile("", path)
            self.tree[path] = Content()
        found = self.tree[path]
        assert found is not None
        return found

    def rename(self, old: str, new: str) -> None:
        what = f"{old} to {new}"
        self.above(old, what)
        self.above(new, what)
        if old not in self.tree:
            raise NoSuchFile("", what)
        if new.startswith(f"{old}/"):
            raise StorageFailure("", what)
        if old == new:
            return
        if new in self.tree and self.is_folder(old) != self.is_folder(new) and not old.startswith(f"{new}/"):
            raise (NotAFolder if self.is_folder(old) else IsAFolder)("", what)
        if self.is_folder(new) and self.below(new):
            raise FolderNotEmpty("", what)
        for path in [old, *self.below(old)] if self.is_folder(old) else [old]:
            self.tree[new + path.removeprefix(old)] = self.tree.pop(path)

    def delete(self, path: str) -> None:
        self.above(path, path)
        if path not in self.tree:
            raise NoSuchFile("", path)
        if self.is_folder(path) and self.below(path):
            raise FolderNotEmpty("", path)
        del self.tree[path]

    def make_folder(self, path: str) -> None:
        self.above(path, path)
        if path in self.tree and not self.is_folder(path):
            raise NotAFolder("", path)
        self.tree[path] = None

    def listing(self, folder: str) -> Listing:
        self.above(f"{folder}/x" if folder else "x", folder)
        names = sorted(
            (path.rpartition("/")[2], path) for path in self.below(folder) if path.rpartition("/")[0] == folder
        )
        files = tuple(name for name, path in names if not self.is_folder(path))
        return Listing(files, tuple(name for name, path in names if self.is_folder(path)))


def outcome(call: Callable[[], Any]) -> Any:
    """What it returns, or the kind and path of its error."""
    try:
        return call()
    except StorageError as error:
        return type(error), error.path


class StorageMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.opened: list[tuple[File, Content]] = []
        self.harness = self.world()

    def world(self) -> StorageHarness:
        raise NotImplementedError

    def asked(self, ask: Callable[[], Future[Any]]) -> Any:
        """The answer, or the kind and path of its error."""
        answers: list[Any] = []

        async def step() -> None:
            future = ask()
            await self.harness.kernel.first(future)
            answers.append(outcome(future.result))

        self.harness.step(step())
        return answers[0]

    @rule(path=paths, create=st.booleans())
    def open(self, path: str, create: bool) -> None:
        expected = outcome(lambda: self.model.open(path, create))
        found = self.asked(lambda: self.harness.storage.open(path, create=create))
        if isinstance(expected, tuple):
            assert found == expected
        elif any(content is expected for _, content in self.opened):
            assert found == (FileBusy, path)
        else:
            assert found.size == len(expected.data)
            self.opened.append((found, expected))

    @rule(data=st.data(), payload=payloads)
    def append(self, data: st.DataObject, payload: bytes) -> None:
        if self.opened:
            file, content = data.draw(st.sampled_from(self.opened))
            assert self.asked(lambda: file.append(payload)) == len(content.data)
            content.data += payload
            assert file.size == len(content.data)

    @rule(data=st.data(), offset=lengths, length=lengths)
    def pread(self, data: st.DataObject, offset: int, length: int) -> None:
        if self.opened:
            file, content = data.draw(st.sampled_from(self.opened))
            assert self.asked(lambda: file.pread(offset, length)) == content.data[offset : offset + length]

    @rule(data=st.data(), length=lengths)
    def truncate(self, data: st.DataObject, length: int) -> None:
        if self.opened:
            file, content = data.draw(st.sampled_from(self.opened))
            assert self.asked(lambda: file.truncate(length)) is None
            content.data = content.data[:length]
            assert file.size == len(content.data)

    @rule(data=st.data())
    def sync(self, data: st.DataObject) -> None:
        if self.opened:
            assert self.asked(data.draw(st.sampled_from(self.opened))[0].sync) is None

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        if self.opened:
            index = data.draw(st.integers(0, len(self.opened) - 1))
            assert self.asked(self.opened.pop(index)[0].close) is None

    @rule(old=paths, new=paths)
    def rename(self, old: str, new: str) -> None:
        expected = outcome(lambda: self.model.rename(old, new))
        assert self.asked(lambda: self.harness.storage.rename(old, new)) == expected

    @rule(path=paths)
    def delete(self, path: str) -> None:
        assert self.asked(lambda: self.harness.storage.delete(path)) == outcome(lambda: self.model.delete(path))

    @rule(path=paths)
    def make_folder(self, path: str) -> None:
        expected = outcome(lambda: self.model.make_folder(path))
        assert self.asked(lambda: self.harness.storage.make_folder(path)) == expected

    @rule(folder=st.one_of(st.just(""), paths))
    def list(self, folder: str) -> None:
        assert self.asked(lambda: self.harness.storage.list(folder)) == outcome(lambda: self.model.listing(folder))

    @rule(folder=st.one_of(st.just(""), paths))
    def sync_folder(self, folder: str) -> None:
        expected = outcome(lambda: self.model.listing(folder))
        answer = self.asked(lambda: self.harness.storage.sync_folder(folder))
        assert answer == (expected if isinstance(expected, tuple) else None)

    @rule()
    def kill(self) -> None:
        self.harness.kill()
        self.opened.clear()

    @rule()
    def lose_power_when_all_is_synced(self) -> None:
        for file, _ in self.opened:
            self.asked(file.sync)
        for path, content in sorted(self.model.tree.items()):
            if content is None:
                self.asked(partial(self.harness.storage.sync_folder, path))
            elif not any(content is each for _, each in self.opened):
                file = self.asked(partial(self.harness.storage.open, path))
                self.asked(file.sync)
        assert self.harness.lose_power().proof is None
        self.opened.clear()

    def teardown(self) -> None:
        self.harness.end()


class SimulatedMachine(StorageMachine):
    def world(self) -> StorageHarness:
        return SimulatedStorageHarness(1)


class LiveMachine(StorageMachine):
    def world(self) -> StorageHarness:
        self._folder = tempfile.TemporaryDirectory()
        return LiveStorageHarness(1, Path(self._folder.name) / "b1")

    def teardown(self) -> None:
        super().teardown()
        self._folder.cleanup()


TestSimulated = SimulatedMachine.TestCase
TestSimulated.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, derandomize=True)
TestLive = LiveMachine.TestCase
TestLive.settings = settings(max_examples=20, stateful_step_count=40, deadline=None, derandomize=True)
