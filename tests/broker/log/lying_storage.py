"""A disk that says that something is durable, and did not make it so."""

from __future__ import annotations

from typing import Any

from rebalance_lab.kernel import Future
from rebalance_lab.world.simulated.storage import SimulatedStorage
from rebalance_lab.world.storage import File


def answered(value: Any = None) -> Future[Any]:
    future: Future[Any] = Future("a lie")
    future.set(value)
    return future


class LyingFile:
    """`File`, which syncs nothing."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def sync(self) -> Future[None]:
        return answered()


class LyingStorage(SimulatedStorage):
    """`lie`: the operation that does nothing, `sync` (of segments) or `sync_folder`."""

    def __init__(self, *arguments: Any, lie: str) -> None:
        super().__init__(*arguments)
        self._lie = lie

    def open(self, path: str, *, create: bool = False) -> Future[File]:
        opening = super().open(path, create=create)
        if self._lie != "sync" or not path.endswith(".log"):
            return opening
        lying: Future[File] = Future(("open", path))

        def opened(found: Future[File]) -> None:
            if found.error is None:
                lying.set(LyingFile(found.result()))
            else:
                lying.fail(found.error)

        opening.on(opened)
        return lying

    def sync_folder(self, folder: str = "") -> Future[None]:
        return answered() if self._lie == "sync_folder" else super().sync_folder(folder)
