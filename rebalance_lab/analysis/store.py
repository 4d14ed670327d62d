"""The trials of a store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rebalance_lab.analysis.results import LeftOut, of_trial
from rebalance_lab.history.files import TRIAL_FILE, HistoryError, Trial, read_trial, trial_folders
from rebalance_lab.history.scratch import is_owned


@dataclass(frozen=True, slots=True)
class Trials:
    """The trials in some folders, by name. Each is read anew whenever it is asked for, because a store may hold more
    than memory can. Iterating raises HistoryError for one that has gone or changed meanwhile."""

    folders: Mapping[str, Path]

    def __iter__(self) -> Iterator[Trial]:
        return (self[name] for name in self.folders)

    def __getitem__(self, name: str) -> Trial:
        return named_as(read_trial(self.folders[name]), name)

    def __len__(self) -> int:
        return len(self.folders)


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds.

    `folders`: trial id to folder, by id; `seen`: trial id to `looks`. `digest`: over all trials, and what their files
    look like. `cut_off`: names of folders with events but without `trial.json`, of trials that ended before they were
    sealed. `left_out`: trials that cannot be read.
    """

    path: Path
    folders: dict[str, Path]
    cut_off: tuple[str, ...] = ()
    seen: dict[str, tuple[str, int]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    digest: str = ""

    @property
    def trials(self) -> Trials:
        return Trials(self.folders)

    @property
    def bytes(self) -> int:
        """Of all histories."""
        return sum(size for _, size in self.seen.values())


def read_store(path: Path) -> Store:
    """Read which trials a store holds, without their events. A store may be a single trial. A trial's id is the name of
    its folder, whatever it was called when it was recorded. A trial that cannot be read is left out. Raises
    HistoryError for a path that is not a folder."""
    if not path.is_dir():
        raise HistoryError(f"{path} is not a folder: give the folder that `run` or `sweep` stored trials in")
    folders, seen, left_out = {}, {}, []
    digest = hashlib.sha256()
    for folder in trial_folders(path):
        name = folder_name(folder)
        try:
            trial, looked = named_by_folder(read_trial(folder), folder), looks(folder)
        except HistoryError as error:
            left_out.append(LeftOut(name, str(error)))
            continue
        folders[name], seen[name] = folder, looked
        digest.update(msgspec.json.encode((trial, looked), order="deterministic"))
    return Store(path, folders, _cut_off(path), seen, tuple(left_out), digest.hexdigest())


def folder_name(folder: Path) -> str:
    """The last part of a folder's path, also if the path is `.`."""
    return folder.resolve().name


def named_by_folder(trial: Trial, folder: Path) -> Trial:
    """The trial, named as it is stored."""
    return named_as(trial, folder_name(folder))


def named_as(trial: Trial, name: str) -> Trial:
    return msgspec.structs.replace(trial, id=name)


def looks(folder: Path) -> tuple[str, int]:
    """What a trial's files look like (names, inodes, sizes, times), and their bytes: a trial that
    still looks the same is the same. No program sets the time of a file's last change of status (ctime), so a file that
    was changed and given its old time looks different. Raises HistoryError."""
    try:
        stats = [(path, path.stat()) for path in [folder / TRIAL_FILE, *sorted(folder.glob("*.jsonl"))]]
    except OSError as error:
        raise HistoryError(f"the events of {folder} cannot be read: {error}") from error
    seen = [(path.name, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns) for path, stat in stats]
    return hashlib.sha256(repr(seen).encode()).hexdigest(), sum(stat.st_size for _, stat in stats)


def _cut_off(path: Path) -> tuple[str, ...]:
    if (path / TRIAL_FILE).is_file():
        return ()
    begun = {file.parent for file in path.glob("*/*.jsonl")}
    ended = (folder for folder in begun if not is_owned(folder))  # a process may still record the others
    return tuple(sorted(folder.name for folder in ended if not (folder / TRIAL_FILE).is_file()))


def trial_row(trial: Trial) -> dict[str, object]:
    """A trial as a row of TRIALS."""
    return {
        **of_trial(trial),
        "generation": trial.subject,
        "parameters": parameter_texts(trial),
        "document": document_of(trial),
    }


def document_of(trial: Trial) -> str:
    """The trial as JSON: the same for one that was just run as for one that was read from its folder."""
    return msgspec.json.encode(trial, order="deterministic").decode()


def history_row(folder: Path, looked: str) -> dict[str, object]:
    """The trial in a folder as a row of HISTORIES, without Parquet. Raises HistoryError."""
    trial = named_by_folder(read_trial(folder), folder)
    place = {"history_sha256": trial.history_sha256, "folder": str(folder), "looks": looked}
    return trial_row(trial) | place | {"part": None, "first_group": None, "groups": None}


def parameter_texts(trial: Trial) -> list[tuple[str, str]]:
    """The names and values of a trial's parameters, numbers as JSON writes them."""
    return [(name, _text(value)) for name, value in trial.parameters.items()]


def _text(value: float | str | bool) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
