"""The trials of a store."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from rebalance_lab.analysis.results import LeftOut, of_trial
from rebalance_lab.history.files import TRIAL_FILE, HistoryError, Trial, read_trial, trial_folders
from rebalance_lab.history.scratch import is_owned


@dataclass(frozen=True, slots=True)
class Store:
    """What a store holds.

    `folders`: trial id to folder, by id; `seen`: trial id to `looks`. `cut_off`: names of folders with events but
    without `trial.json`, of trials that ended before they were sealed. `left_out`: trials that cannot be read.
    """

    path: Path
    folders: dict[str, Path]
    trials: tuple[Trial, ...]
    cut_off: tuple[str, ...] = ()
    seen: dict[str, tuple[str, int]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def read_store(path: Path) -> Store:
    """Read which trials a store holds, without their events. A store may be a single trial. A trial's id is the name of
    its folder, whatever it was called when it was recorded. A trial that cannot be read is left out. Raises
    HistoryError for a path that is not a folder."""
    if not path.is_dir():
        raise HistoryError(f"{path} is not a folder: give the folder that `run` or `sweep` stored trials in")
    folders, trials, seen, left_out = {}, [], {}, []
    for folder in trial_folders(path):
        name = folder_name(folder)
        try:
            trial, looked = named_by_folder(read_trial(folder), folder), looks(folder)
        except HistoryError as error:
            left_out.append(LeftOut(name, str(error)))
            continue
        folders[name], seen[name] = folder, looked
        trials.append(trial)
    return Store(path, folders, tuple(trials), _cut_off(path), seen, tuple(left_out))


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
    ended = (folder for folder in begun if not is_owned(folder))  # a process may still record the others
    return tuple(sorted(folder.name for folder in ended if not (folder / TRIAL_FILE).is_file()))


def trial_row(trial: Trial) -> dict[str, object]:
    """A trial as a row of TRIALS."""
    return {
        **of_trial(trial),
        "generation": trial.subject,
        "parameters": [(name, _text(value)) for name, value in trial.parameters.items()],
        "document": msgspec.json.encode(trial).decode(),
    }


def history_rows(store: Store) -> list[dict[str, object]]:
    """The trials as rows of HISTORIES, without Parquet."""
    nowhere = {"part": None, "first_group": None, "groups": None}
    return [
        trial_row(trial)
        | {"history_sha256": trial.history_sha256, "folder": str(folder.resolve()), "looks": store.seen[trial.id][0]}
        | nowhere
        for trial in store.trials
        for folder in [store.folders[trial.id]]
    ]


def _text(value: float | str | bool) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
