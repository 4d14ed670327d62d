"""Signals at any moment of any command: nothing that it started stays, nothing is left half-written.

A command joins by a line in COMMANDS. One that is not there has its reason in NOT_SHOT_AT. Each command is run once
without a shot. How long that takes is divided into as many equal parts as there are shots, and each part gets one at a
random moment. Shots are fired side by side, each in a folder of its own. No command may carry on after a signal, nor
leave a file that it does not leave when it runs to its end.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from cli_tools import COMMAND, LIMIT_S, background, commands, end, next_line
from shot_commands import COMMANDS, NOT_SHOT_AT, RARE, SHOTS, SWEEPERS, TOPIC, USUAL, Shot
from thorough import only_thorough
from warm_start import Started, WarmStart

from rebalance_lab.analysis.analyse import ANALYSIS_FILE
from rebalance_lab.analysis.parquet import FOLDER
from rebalance_lab.cli.at_once import NAME
from rebalance_lab.history.files import load, trial_folders
from rebalance_lab.report.files import PAGES

#: Another number gives other moments.
SEED = os.environ.get("REBALANCE_LAB_SHOTS_SEED", "1")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200 * (SHOTS + 1))]

#: Processes that the kernel kills with their parent end a moment after it.
_SETTLE_S = 20.0

#: Longer than any command takes, or any end of one, on a machine that does ten other things.
_ENDS_S = 400.0

#: How long a command that runs until it is interrupted is watched after its first answer, as a part of the time before.
_SERVES = 0.3

STORE = "trials"

#: What a store holds beside trials.
OWN = (FOLDER, ANALYSIS_FILE, PAGES, "report.html")

#: What is in the folder of every command line.
GIVEN = ("out", "err", "tmp", STORE)

#: A command may end by itself after a signal that came this late in it, or if it ends within this time.
_LATE = 0.6
_AT_ONCE_S = 1.0


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with trials, for commands that read one."""
    store = tmp_path_factory.mktemp("shots") / "trials"
    subprocess.run(
        [*COMMAND, "sweep", "zombie", "--seeds", "20", "--store", str(store)], check=True, capture_output=True
    )
    return store


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command runs. `temporary`: its place for temporary folders, which others may share."""

    folder: Path
    temporary: Path

    @property
    def errors(self) -> str:
        return (self.folder / "err").read_text("utf-8", "replace")

    @property
    def answers(self) -> bool:
        out = self.folder / "out"
        return out.exists() and out.stat().st_size > 0

    def unfinished(self, writes: Sequence[str]) -> list[str]:
        """What a command that ran to its end would not leave. `writes`: as in Shot."""
        store = self.folder / STORE
        trials = set(trial_folders(store)) if store.exists() else set()
        for trial in trials:
            load(trial)
        known = {self.folder / each for each in (*GIVEN, *writes)} | trials | {store / each for each in OWN}
        there = {*self.folder.iterdir(), *(store.iterdir() if store.exists() else ())}
        parts = {each for each in self.folder.rglob("*.part") if self.temporary not in each.parents}
        pages = {each for each in self.folder.rglob("*.html") if not each.read_text().rstrip().endswith("</html>")}
        return sorted(each.name for each in (there - known) | parts | pages | set(self.temporary.iterdir()))


@dataclass(frozen=True, slots=True)
class Ground:
    """What the commands of one test start from. `others`: processes below the tests' that were there before. `given`:
    what stands for the names in a shot's arguments. `nothing`: a standard input that stays open, and from which nothing
    comes. `started`: all that were."""

    folder: Path
    warm: WarmStart
    stored: Path
    others: frozenset[psutil.Process]
    given: dict[str, str]
    nothing: int
    started: list[Started] = field(default_factory=list)

    def place(self, name: str, *, temporary: Path | None = None) -> Place:
        found = Place(self.folder / name, temporary or self.folder / name / "tmp")
        found.folder.mkdir()
        found.temporary.mkdir(exist_ok=True)
        return found

    def start(self, shot: Shot, place: Place) -> Started:
        """Run its command there; returns once the lab handles signals, or it has ended."""
        if shot.reads and not (place.folder / "trials").exists():
            shutil.copytree(self.stored, place.folder / "trials", copy_function=os.link)
        arguments = [each.format_map(self.given) for each in shot.arguments]
        found = self.warm.start(
            arguments, place.folder, stdin=self.nothing, cold=shot.cold, TMPDIR=str(place.temporary)
        )
        self.started.append(found)
        _wait_for_the_lab(found)
        return found

    def processes(self) -> list[psutil.Process]:
        """Those that a command started, and that run: all below the tests' process, which adopts the orphans."""
        return [each for each in _below() if each not in self.others and _runs(each)]

    def semaphores(self) -> set[Path]:
        """Those in shared memory that its processes use now."""
        return {Path(path) for each in self.processes() for path in _mapped(each) if path.startswith("/dev/shm/sem.")}


def _below() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


#: Of <linux/prctl.h>: whether orphans below this process become its children, and not those of process 1.
_PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def adopted() -> Iterator[None]:
    """Whatever a command starts stays below the tests' process, with any environment and in any session."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
    yield
    prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A ZooKeeper, and a broker with the topic, for commands that connect."""
    with background("cluster", "--json") as process:
        ready = next_line(process)
        addresses = {name: str(ready[name]) for name in ("zookeeper", "bootstrap")}
        at = ["--bootstrap", addresses["bootstrap"], "--topic", TOPIC]
        subprocess.run([*COMMAND, "produce", *at], input=b"one\n", check=True, capture_output=True, timeout=LIMIT_S)
        yield addresses
        end(process, signal.SIGTERM)


@pytest.fixture
def given(request: pytest.FixtureRequest, stored: Path) -> dict[str, str]:
    """What stands for the names in the arguments of the test's shot, if it has one."""
    shot = getattr(request.node, "callspec", None) and request.node.callspec.params.get("shot")
    addresses = request.getfixturevalue("served") if shot and shot.connects else {}
    return {**addresses, "trial": str(trial_folders(stored)[0])}


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmStart]:
    with WarmStart() as found:
        yield found


@pytest.fixture
def ground(tmp_path: Path, adopted: None, warm: WarmStart, given: dict[str, str], stored: Path) -> Iterator[Ground]:
    reading, writing = os.pipe()
    found = Ground(tmp_path, warm, stored, frozenset(_below()), given, reading)
    try:
        yield found
    finally:
        for each in found.processes():  # a failed test leaves some
            each.kill()
        for orphan in _below() - found.others:
            with suppress(ChildProcessError):
                os.waitpid(orphan.pid, 0)
        os.close(reading)
        os.close(writing)


def _mapped(process: psutil.Process) -> list[str]:
    try:
        return [each.path for each in process.memory_maps()]
    except (psutil.Error, OSError):
        return []


def _all_ended(ground: Ground) -> list[str]:
    """The processes that are still there after a generous time."""
    give_up = time.monotonic() + _SETTLE_S
    while (left := ground.processes()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return [str(each) for each in left]


def _marked(shots: Iterable[Shot]) -> list[Any]:
    return [pytest.param(each, marks=only_thorough if USUAL and each.command in RARE else ()) for each in shots]


def test_every_command_is_shot_at() -> None:
    there = {name for name, _ in commands()}
    assert {each.command for each in COMMANDS} | NOT_SHOT_AT.keys() == there
    assert all(len(reason) > 10 for reason in NOT_SHOT_AT.values())


def _wait_for_the_lab(started: Started) -> None:
    """Wait until the lab has handlers of its own, or the process has ended. Python has none for SIGTERM; on SIGINT it
    prints a traceback while it starts, which no program can change."""
    terminable = 1 << (signal.SIGTERM - 1)
    while not started.has_ended and not _caught_signals(started.pid) & terminable:
        time.sleep(0.002)


def _caught_signals(pid: int) -> int:
    """The mask of the signals for which the process has handlers."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16)
    return 0


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """How a command runs without a shot: for how long, or until when shots are fired, and its exit code, if it ends by
    itself."""

    duration_s: float
    code: int | None


@pytest.fixture(scope="module")
def known() -> dict[Shot, Undisturbed]:
    """What was found out of each command so far."""
    return {}


def _undisturbed(shot: Shot, ground: Ground, known: dict[Shot, Undisturbed]) -> Undisturbed:
    if shot.within_s is not None:
        return Undisturbed(shot.within_s, None)
    if shot not in known:
        place = ground.place("undisturbed")
        began_s = time.monotonic()
        started = ground.start(shot, place)
        if shot.foreground:
            _wait_for_answer(place, started)
            known[shot] = Undisturbed((time.monotonic() - began_s) * (1 + _SERVES), None)
            started.send_signal(signal.SIGTERM)
            assert started.wait(_ENDS_S) == 0, place.errors
        else:
            code = started.wait(_ENDS_S)
            # 2: trials may be too few for a verdict.
            said = [line for line in place.errors.splitlines() if not line.startswith(f"{NAME}: still running after ")]
            assert code in (0, 2) and NAME not in "".join(said), f"exit {code}, stderr {place.errors!r}"
            known[shot] = Undisturbed(time.monotonic() - began_s, code)
        shutil.rmtree(place.folder)
    return known[shot]


@dataclass(frozen=True, slots=True)
class Fired:
    """A shot, and what became of the command. `took_s`: from the signal to its end; None if it had ended before.
    `semaphores`: those that were in use before."""

    place: Place
    number: signal.Signals
    after_s: float
    code: int | None
    took_s: float | None
    semaphores: frozenset[Path]

    @property
    def told(self) -> str:
        took = "had ended" if self.took_s is None else f"took {self.took_s:.3f} s"
        return f"{self.number.name} after {self.after_s:.3f} s: {took}, exit {self.code}, stderr {self.place.errors!r}"

    @property
    def hit(self) -> bool:
        """Whether the signal has ended the command."""
        return self.code == 128 + self.number

    def must_interrupt(self, duration_s: float) -> bool:
        """Whether the command was at work, so that only the signal can have ended it. `duration_s`: of one without a
        shot."""
        return self.took_s is not None and self.took_s > _AT_ONCE_S and self.after_s < _LATE * duration_s


def _fire_all(
    shot: Shot, numbers: Sequence[signal.Signals], ground: Ground, duration_s: float, temporary: Path | None = None
) -> list[Fired]:
    """Shots of each signal, over the whole duration. No two are in the same part of it."""
    rng = random.Random(f"{shot.arguments} {SEED}")
    parts = SHOTS * len(numbers)
    moments = [
        (number, (part + rng.random()) / parts * duration_s)
        for first in range(0, parts, len(numbers))
        for part, number in enumerate(rng.sample(numbers, len(numbers)), first)
    ]

    def fire(number: signal.Signals, after_s: float, *, at_all: bool) -> Fired:
        place = ground.place(f"{number.name}-{after_s:.6f}", temporary=temporary)
        started = ground.start(shot, place)
        used: set[Path] = set()
        took_s = None
        code = started.wait(after_s)
        if code is None:
            used = ground.semaphores()
            sent_s = time.monotonic()
            if at_all:
                _kill_all(started)
            else:
                started.send_signal(number)
            code = started.wait(_ENDS_S)
            took_s = time.monotonic() - sent_s
        return Fired(place, number, after_s, code, took_s, frozenset(used))

    first = zlib.crc32(shot.name.encode())  # with one shot only, some commands get this one and some that one
    alone = [number != signal.SIGKILL or (first + index) % 2 == 0 for index, (number, _) in enumerate(moments)]
    with ThreadPoolExecutor(shot.beside) as pool:
        waiting = [
            pool.submit(fire, number, after_s, at_all=not one)
            for (number, after_s), one in zip(moments, alone, strict=True)
        ]
        return [each.result() for each in waiting]


def _kill_all(started: Started) -> None:
    """As `kill -9` of a process group does: no process is left to tidy up, not even the one that removes semaphores."""
    with suppress(psutil.NoSuchProcess):
        for each in psutil.Process(started.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                each.kill()
    started.send_signal(signal.SIGKILL)


def _fire_until_one_hits(shot: Shot, ground: Ground, duration_s: float) -> list[Fired]:
    """Shots of each signal; once more in the first half of the time, if the command had ended before each of them."""
    fired = _fire_all(shot, shot.signals, ground, duration_s)
    if not shot.foreground and duration_s > _AT_ONCE_S and not any(each.hit for each in fired):
        return fired + _fire_until_one_hits(shot, ground, duration_s / 2)
    return fired


@pytest.mark.parametrize("shot", _marked(COMMANDS), ids=lambda each: each.name)
def test_a_signal_ends_all_and_leaves_nothing(shot: Shot, ground: Ground, known: dict[Shot, Undisturbed]) -> None:
    alone = _undisturbed(shot, ground, known)
    fired = _fire_until_one_hits(shot, ground, alone.duration_s)
    before_it = {0, 2} if shot.live else {alone.code}
    for each in fired:
        by_it = 0 if shot.foreground else 128 + each.number
        expected = set() if each.must_interrupt(alone.duration_s) else before_it
        assert each.code in expected | {by_it}, each.told
        assert not re.search("Traceback|Warning", each.place.errors), each.told
        told = [line for line in each.place.errors.splitlines() if line.startswith(f"{NAME}: interrupted by")]
        assert len(told) == each.hit, each.told
        assert not told or each.place.errors.endswith(f"{told[0]}\n"), each.told
    if not shot.foreground and alone.duration_s > _AT_ONCE_S:
        assert any(each.hit for each in fired), [each.told for each in fired]
    assert _all_ended(ground) == [], [each.told for each in fired]
    left = {each.told: each.place.unfinished(shot.writes) for each in fired}
    assert {told: names for told, names in left.items() if names} == {}
    assert [path for each in fired for path in each.semaphores if path.exists()] == []
    for each in fired:
        shutil.rmtree(each.place.folder)


@pytest.mark.parametrize(
    "shot", _marked(each for each in COMMANDS if each.arguments[0] != "scenarios"), ids=lambda each: each.name
)
def test_after_a_kill_the_next_command_tidies_up(shot: Shot, ground: Ground, known: dict[Shot, Undisturbed]) -> None:
    temporary = ground.folder / "tmp"
    fired = _fire_all(shot, (signal.SIGKILL,), ground, _undisturbed(shot, ground, known).duration_s, temporary)
    assert _all_ended(ground) == []
    if shot.command in SWEEPERS:
        place = fired[0].place
        shutil.rmtree(place.folder / "tables", ignore_errors=True)
        (place.folder / "out").unlink()
        started = ground.start(shot, place)
        if shot.foreground:
            _wait_for_answer(place, started)
            started.send_signal(signal.SIGTERM)
        assert started.wait(_ENDS_S) in (0, 2), place.errors  # 2: trials may be too few for a verdict
    else:
        for each in fired:
            assert ground.start(shot.tidied_by, each.place).wait(_ENDS_S) == 0, each.place.errors
    for each in fired:
        assert [left for left in each.place.unfinished(shot.writes) if not _goes_when_written_again(left)] == [], (
            each.told
        )
    assert [path for each in fired for path in each.semaphores if path.exists()] == []


def _goes_when_written_again(left: str) -> bool:
    """A page or a picture has one name while it is written, so the next command that writes it takes this file."""
    return left.endswith((".html.part", ".svg.part"))


#: It starts a child, says which, and ends. The child has no environment, a session of its own, and no parent any more.
_HIDES = """
import subprocess, sys
sleeps = [sys.executable, "-c", "import time; time.sleep(600)"]
nothing = subprocess.DEVNULL
child = subprocess.Popen(sleeps, env={}, stdout=nothing, stderr=nothing, start_new_session=True)
print(child.pid, flush=True)
"""


def test_a_child_that_hides_is_found(ground: Ground) -> None:
    told = subprocess.run([sys.executable, "-c", _HIDES], check=True, capture_output=True).stdout
    (child,) = ground.processes()
    assert child.pid == int(told)
    assert (child.ppid(), child.environ()) == (os.getpid(), {})


def _wait_for_answer(place: Place, started: Started) -> None:
    while not place.answers:
        assert not started.has_ended, place.errors
        time.sleep(0.02)
