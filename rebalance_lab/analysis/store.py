"""The trials of a store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rebalance_lab.analysis.results import of_trial
from rebalance_lab.history.files import TRIAL_FILE, HistoryError, Trial, read_trial, trial_folders


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds.

    `folders`: trial id to folder, by id. `cut_off`: names of folders with events but without `trial.json`, of trials
    that ended before they were sealed; they are left out.
    """

    path: Path
    folders: dict[str, Path]
    trials: tuple[Trial, ...]
    cut_off: tuple[str, ...]


def read_store(path: Path) -> Store:
    """Read which trials a store holds, without their events. A store may be a single trial. A trial's id is the name of
    its folder, whatever it was called when it was recorded. Raises HistoryError for a path that is not a folder, and
    for a `trial.json` that cannot be read."""
    if not path.is_dir():
        raise HistoryError(f"{path} is not a folder: give the folder that `run` or `sweep` stored trials in")
    folders = {folder_name(folder): folder for folder in trial_folders(path)}
    trials = tuple(named_by_folder(read_trial(folder), folder) for folder in folders.values())
    return Store(path, folders, trials, _cut_off(path))


def folder_name(folder: Path) -> str:
    """The last part of a folder's path, also if the path is `.`."""
    return folder.resolve().name


def named_by_folder(trial: Trial, folder: Path) -> Trial:
    """The trial, named as it is stored."""
    return msgspec.structs.replace(trial, id=folder_name(folder))


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
    return tuple(sorted(folder.name for folder in begun if not (folder / TRIAL_FILE).is_file()))


def trial_row(trial: Trial) -> dict[str, object]:
    """A trial as a row of TRIALS."""
    return {
        **of_trial(trial),
        "generation": trial.generation,
        "parameters": [(name, _text(value)) for name, value in trial.parameters.items()],
        "document": msgspec.json.encode(trial).decode(),
    }


def _text(value: float | str | bool) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
