"""A trial on disk: a folder with `trial.json` and one JSON-lines file for each process.

`trial.json` is written last, in one rename. A folder without it is a trial that was interrupted.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from rebalance_lab.history.disk import writing
from rebalance_lab.history.events import Event, decode, encode_lines, order
from rebalance_lab.kernel.errors import LabError

SCHEMA_VERSION = 2
TRIAL_FILE = "trial.json"

#: The field of `trial.json` that covers all others. It belongs to the file, not to the trial.
SEAL_FIELD = "trial_sha256"


class HistoryError(LabError):
    """A trial folder cannot be read. The message names the file and line, and what to do."""


#: Tables hold seeds as signed integers of 64 bits.
MAX_SEED = 2**63 - 1


class Trial(msgspec.Struct, frozen=True, omit_defaults=False):
    """The description of a trial: all that is needed to run it again and to judge it.

    - `id`: the folder's name. `world`: simulated | processes | containers.
    - `subject`: what it is about, such as zk; trial.json and tables call it `generation`.
    - `control`: the scenario without its fault. `parameters`: every setting of the scenario.
    - `rules`: the rule set that its nodes followed. `implementation`: whose nodes took part: ours | real | mixed.
      Schema 1 had both in `rules`: described | shipped | real | mixed.
    - `plant`: name of the planted bug; None if there is none.
    - `boot_ids`: boot id and time namespace of each clock that the processes read. More than one makes the trial
      unknown.
    - `wall_offset_us`: wall clock minus `at_us` as the runner measured it, in microseconds;
      `wall_drift_us`: the same measured again at the end, minus the first (0 if simulated).
    - `versions`: of the lab, Python, libraries; live: ZooKeeper; in containers: the images' ids.
    - `started_wall_ms`: epoch ms (0 if simulated).
    - `history_sha256`: `digest` of its events; empty if they were not sealed.
    """

    id: str
    scenario: str
    world: str
    subject: str = msgspec.field(name="generation")
    rules: str
    seed: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEED)]
    control: bool
    parameters: dict[str, int | float | str | bool]
    plant: str | None = None
    boot_ids: tuple[str, ...] = ()
    wall_offset_us: int = 0
    wall_drift_us: int = 0
    versions: dict[str, str] = {}
    started_wall_ms: int = 0
    history_sha256: str = ""
    schema_version: int = SCHEMA_VERSION
    implementation: str = "ours"

    def __post_init__(self) -> None:
        if self.rules in {"real", "mixed"}:  # of schema 1; real members follow the rules as shipped
            msgspec.structs.force_setattr(self, "implementation", self.rules)
            msgspec.structs.force_setattr(self, "rules", "shipped")

    @property
    def variant(self) -> str:
        """The value by which tables and pictures compare trials, under the name `rules`: the rule set, or real | mixed
        if not all nodes were the lab's."""
        return self.rules if self.implementation == "ours" else self.implementation


class History(msgspec.Struct, frozen=True, dict=True):
    """A trial and its events, merged by (at_us, actor, n).

    `__dict__` is not part of it: `history.views` uses it as a cache for what it derives from the events.
    """

    trial: Trial
    events: tuple[Event, ...]


def merge(events: Iterable[Event]) -> tuple[Event, ...]:
    """Events of several actors in the history's order."""
    return tuple(sorted(events, key=order))


def canonical(events: Iterable[Event]) -> bytes:
    """The events as JSON lines, in the given order. Files contain this, and the hash covers it."""
    return encode_lines(events)


def digest(events: Iterable[Event]) -> str:
    """`history_sha256`: over the canonical lines in merge order."""
    return hashlib.sha256(canonical(events)).hexdigest()


def seal(folder: Path, trial: Trial) -> None:
    """Write `trial.json` by rename, which completes the trial. Its field `trial_sha256` covers its other fields, as
    `history_sha256` covers the events."""
    fields = msgspec.to_builtins(trial)
    fields[SEAL_FIELD] = _fields_digest(fields)
    text = msgspec.json.format(msgspec.json.encode(fields, order="deterministic"), indent=1)
    write_whole(folder / TRIAL_FILE, text + b"\n")


def write_whole(out: Path, content: bytes) -> None:
    """Write a file in one rename, so that nobody reads a part of it, also if there is no space for it. Of a link the
    target is written, and the link stays. A device or a pipe is written to. Raises OSError, which names the
    file."""
    if is_stream(out):
        with writing(out):
            out.write_bytes(content)
        return
    out = Path(os.path.realpath(out))
    part = out.with_name(f"{out.name}.part")
    try:
        with writing(out):
            part.write_bytes(content)
            os.replace(part, out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def is_stream(path: Path) -> bool:
    """Whether it is there and cannot be replaced by a file: a device, a pipe, or an open file by its descriptor."""
    return (path.exists() and not path.is_file()) or str(path.absolute()).startswith(("/dev/fd/", "/dev/std", "/proc/"))


def _fields_digest(fields: dict[str, object]) -> str:
    """SHA-256 over the fields as one line of JSON, in the order of their names."""
    return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()


def read_trial(folder: Path) -> Trial:
    """The trial in a folder. Raises HistoryError as `parse_trial`, and if there is none."""
    path = folder / TRIAL_FILE
    if path.exists() and not path.is_file():
        raise HistoryError(f"{path} is not a file")
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise HistoryError(f"{folder} holds no {TRIAL_FILE}: not a trial, or one that was cut off") from None
    except OSError as error:
        raise HistoryError(f"{path} cannot be read: {error}") from error
    return parse_trial(text, str(path))


def parse_trial(text: bytes, where: str) -> Trial:
    """The trial that a `trial.json` describes. `where` it was read, for errors. Raises HistoryError, also if a field
    differs from what was sealed, or if there is no seal."""
    try:
        fields = msgspec.json.decode(text)
        trial = msgspec.convert(fields, Trial)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HistoryError(f"{where} cannot be read: {error}") from error
    if trial.schema_version > SCHEMA_VERSION:
        raise HistoryError(
            f"{where} has schema {trial.schema_version}; this lab reads up to {SCHEMA_VERSION}: update it"
        )
    sealed = fields.pop(SEAL_FIELD, None)
    if sealed is None:
        raise HistoryError(f"{where} has no {SEAL_FIELD}: it may have been changed; run the trial again")
    if sealed != (found := _fields_digest(fields)):
        raise HistoryError(
            f"{where} was changed after it was sealed: its fields have SHA-256 {found}, "
            f"{SEAL_FIELD} says {sealed}; run the trial again"
        )
    return trial


def read_events(path: Path) -> Iterator[Event]:
    """The events of one file. A last line that kill -9 cut off is left out. Any other broken line raises HistoryError,
    and so does anything but a file: a pipe would be read for ever."""
    if path.exists() and not path.is_file():
        raise HistoryError(f"{path} is not a file")
    return parse_events(path.read_bytes(), str(path))


def parse_events(data: bytes, where: str) -> Iterator[Event]:
    """The events of the content of a file, as `read_events`. `where` it was read, for errors."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        if number == len(lines):  # it has no line feed: the writer died during this write
            return
        try:
            yield decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HistoryError(f"{where}:{number} is not an event: {error}") from error


def load(folder: Path) -> History:
    """A whole trial. Raises HistoryError, also if its events differ from those that were sealed."""
    trial = read_trial(folder)
    files = sorted(folder.glob("*.jsonl"))
    history = History(trial, merge(event for file in files for event in read_events(file)))
    must_be_sealed(history, str(folder))
    return history


def must_be_sealed(history: History, where: str) -> None:
    """Raises HistoryError if the events differ from those that were sealed, if any were."""
    sealed = history.trial.history_sha256
    if sealed and (found := digest(history.events)) != sealed:
        raise HistoryError(
            f"{where} was changed after it was sealed: its events have SHA-256 {found}, "
            f"{TRIAL_FILE} says {sealed}; run the trial again"
        )


def replay_command(folder: Path | str) -> str:
    """The command that runs a stored trial again."""
    return f"rebalance-lab replay {shlex.quote(str(folder))}"


def trial_folders(store: Path) -> list[Path]:
    """The folders of the sealed trials in a store, by name. If the store is itself a trial, only this folder.

    A folder whose name begins with a dot is not a trial; a runner that was killed leaves incomplete ones.
    """
    if (store / TRIAL_FILE).is_file():
        return [store]
    folders = (path.parent for path in store.glob(f"*/{TRIAL_FILE}"))
    return sorted(folder for folder in folders if not folder.name.startswith("."))
