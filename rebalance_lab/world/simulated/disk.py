"""A simulated disk: what its files and folders hold, and what of that would outlive a loss of power.

No time passes here (`simulated.storage` adds it). Errors are those of Linux, in its order of precedence.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cached_property

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.power_loss import PowerLoss, surviving
from rebalance_lab.world.storage import (
    DiskFull,
    FolderNotEmpty,
    IsAFolder,
    Listing,
    NoSuchFile,
    NotAFolder,
    StorageFailure,
    file_parts,
    parts_of,
)


@dataclass(frozen=True, slots=True)
class DiskSettings:
    """How long operations take, as (least, most) in µs, both included, and how much fits.

    `name_us`: an operation on names; `read_us`, `write_us`: before the first byte; `sync_us`: making things durable.
    `bytes_per_us`: how many bytes are read or written in a µs. `capacity_bytes`: of the whole disk; None: no limit.
    """

    name_us: tuple[int, int] = (20, 100)
    read_us: tuple[int, int] = (10, 60)
    write_us: tuple[int, int] = (10, 60)
    sync_us: tuple[int, int] = (500, 5000)
    bytes_per_us: int = 1000
    capacity_bytes: int | None = None


@dataclass(slots=True, eq=False)
class DiskFile:
    """`synced_bytes`: its length at the last sync. `truncations`: those since then, the oldest first: the length that
    each left, and the bytes that it cut off."""

    data: bytearray = field(default_factory=bytearray)
    synced_bytes: int = 0
    truncations: list[tuple[int, bytes]] = field(default_factory=list)

    def truncate(self, length: int) -> None:
        if length < len(self.data):
            self.truncations.append((length, bytes(self.data[length:])))
            del self.data[length:]

    def sync(self) -> None:
        self.synced_bytes = len(self.data)
        self.truncations.clear()

    @property
    def unsynced(self) -> int:
        """How many steps a loss of power could undo: a byte that was appended is one, and a truncation."""
        steps, base = len(self.truncations), self.synced_bytes
        for length, removed in self.truncations:
            steps += length + len(removed) - base
            base = length
        return steps + len(self.data) - base

    def undo(self, steps: int) -> tuple[int, int]:
        """Take back the last `steps`, at most `unsynced`, and make the rest durable. Returns how many of them were
        bytes, and how many truncations."""
        left, truncations = steps, 0
        while left > (appended := len(self.data) - self._base):
            del self.data[self._base :]
            self.data += self.truncations.pop()[1]
            truncations += 1
            left -= appended + 1
        del self.data[len(self.data) - left :]
        self.sync()
        return steps - truncations, truncations

    @property
    def _base(self) -> int:
        """Where what was appended since the last truncation or sync begins."""
        return self.truncations[-1][0] if self.truncations else self.synced_bytes


@dataclass(slots=True, eq=False)
class DiskFolder:
    entries: dict[str, DiskEntry] = field(default_factory=dict)


DiskEntry = DiskFile | DiskFolder


@dataclass(frozen=True, slots=True)
class _Change:
    """An operation on names that no sync has made durable yet: folder, name, and what had the name before."""

    names: tuple[tuple[DiskFolder, str, DiskEntry | None], ...]

    def concerns(self, folders: Set[DiskFolder]) -> bool:
        return any(folder in folders for folder, _, _ in self.names)

    def undo(self) -> None:
        for folder, name, before in self.names:
            if before is None:
                del folder.entries[name]
            else:
                folder.entries[name] = before


class SimulatedDisk:
    """The files of `actor`. `seed`: the trial's, for how long operations take and what a loss of power keeps."""

    def __init__(self, seed: int | str, actor: str, settings: DiskSettings = DiskSettings()) -> None:
        self.settings = settings
        self._seed = seed
        self._actor = actor
        self._root = DiskFolder()
        self._changes: list[_Change] = []

    @cached_property
    def stream(self) -> RandomStream:
        """Made when it is first needed: most actors keep no files."""
        return RandomStream(self._seed, self._actor, "disk")

    # -- operations -------------------------------------------------------------------------

    def open(self, path: str, *, create: bool) -> DiskFile:
        folder, name = self._place("open", path)
        found = folder.entries.get(name)
        if isinstance(found, DiskFolder):
            raise IsAFolder("open", path)
        if found is None:
            if not create:
                raise NoSuchFile("open", path)
            found = DiskFile()
            self._set((folder, name, found))
        return found

    def append(self, file: DiskFile, path: str, data: bytes) -> int:
        offset, limit = len(file.data), self.settings.capacity_bytes
        if limit is not None and sum(len(each.data) for each in self.files().values()) + len(data) > limit:
            raise DiskFull("append", path)
        file.data += data
        return offset

    def rename(self, old: str, new: str) -> None:
        what = f"{old} to {new}"
        (from_folder, from_name), (to_folder, to_name) = (self._place("rename", path, what) for path in (old, new))
        found, replaced = from_folder.entries.get(from_name), to_folder.entries.get(to_name)
        if found is None:
            raise NoSuchFile("rename", what)
        if f"{new}/".startswith(f"{old}/") and old != new:
            raise StorageFailure("rename", what, "a folder cannot stand in itself")
        if f"{old}/".startswith(f"{new}/") and old != new:
            raise FolderNotEmpty("rename", what)
        if found is replaced:
            return
        if isinstance(found, DiskFolder) and isinstance(replaced, DiskFile):
            raise NotAFolder("rename", what)
        if isinstance(found, DiskFile) and isinstance(replaced, DiskFolder):
            raise IsAFolder("rename", what)
        if isinstance(replaced, DiskFolder) and replaced.entries:
            raise FolderNotEmpty("rename", what)
        self._set((to_folder, to_name, found), (from_folder, from_name, None))

    def delete(self, path: str) -> None:
        folder, name = self._place("delete", path)
        found = folder.entries.get(name)
        if found is None:
            raise NoSuchFile("delete", path)
        if isinstance(found, DiskFolder) and found.entries:
            raise FolderNotEmpty("delete", path)
        self._set((folder, name, None))

    def listing(self, folder: str) -> Listing:
        entries = sorted(self._folder("list", folder).entries.items())
        return Listing(
            tuple(name for name, each in entries if isinstance(each, DiskFile)),
            tuple(name for name, each in entries if isinstance(each, DiskFolder)),
        )

    def make_folder(self, path: str) -> None:
        if not parts_of(path):
            return
        folder, name = self._place("make folder", path)
        found = folder.entries.get(name)
        if isinstance(found, DiskFile):
            raise NotAFolder("make folder", path)
        if found is None:
            self._set((folder, name, DiskFolder()))

    def sync_folder(self, path: str) -> None:
        """Also what happened before to the folders of a change that is made durable: a file system keeps changes of
        one folder in their order, and a rename from one folder to another is one change of both."""
        folders, kept = {self._folder("sync folder", path)}, []
        for change in reversed(self._changes):
            if change.concerns(folders):
                folders.update(folder for folder, _, _ in change.names)
            else:
                kept.append(change)
        self._changes = kept[::-1]

    # -- loss of power ----------------------------------------------------------------------

    def lose_power(self, *, everything: bool = False) -> PowerLoss:
        """Keep what was synced, and any beginning of the rest, or none of it (`everything`); all that is left is
        durable. No process may run."""
        kept = 0 if everything else surviving(self.stream, len(self._changes))
        undone = len(self._changes) - kept
        for change in reversed(self._changes[kept:]):
            change.undo()
        self._changes.clear()
        bytes_lost: dict[str, int] = {}
        for path, file in self.files().items():
            unsynced = file.unsynced
            lost, truncations = file.undo(unsynced - (0 if everything else surviving(self.stream, unsynced)))
            undone += truncations
            if lost:
                bytes_lost[path] = lost
        return PowerLoss(bytes_lost, undone)

    def files(self) -> dict[str, DiskFile]:
        """All that have a name, by their paths."""
        found: dict[str, DiskFile] = {}
        pending = [("", self._root)]
        while pending:
            prefix, folder = pending.pop()
            for name, entry in sorted(folder.entries.items()):
                if isinstance(entry, DiskFile):
                    found[prefix + name] = entry
                else:
                    pending.append((f"{prefix}{name}/", entry))
        return found

    # -- names ------------------------------------------------------------------------------

    def _set(self, *changes: tuple[DiskFolder, str, DiskEntry | None]) -> None:
        """Give names to entries, or take them away."""
        before = tuple((folder, name, folder.entries.get(name)) for folder, name, _ in changes)
        self._changes.append(_Change(before))
        for folder, name, entry in changes:
            if entry is None:
                del folder.entries[name]
            else:
                folder.entries[name] = entry

    def _place(self, operation: str, path: str, shown: str | None = None) -> tuple[DiskFolder, str]:
        """The folder and the name that a path ends in. Raises NoSuchFile and NotAFolder."""
        *above, name = file_parts(path)
        return self._folder(operation, "/".join(above), path if shown is None else shown), name

    def _folder(self, operation: str, path: str, shown: str | None = None) -> DiskFolder:
        found: DiskEntry = self._root
        for part in parts_of(path):
            below = found.entries.get(part) if isinstance(found, DiskFolder) else found
            if below is None:
                raise NoSuchFile(operation, path if shown is None else shown)
            found = below
        if isinstance(found, DiskFile):
            raise NotAFolder(operation, path if shown is None else shown)
        return found
