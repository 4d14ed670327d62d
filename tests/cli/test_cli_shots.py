"""Signals at any moment of any command: nothing that it started stays, nothing is left half-written.

A command joins by a line in COMMANDS. One that is not there has its reason in NOT_SHOT_AT.
"""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from cli_tools import COMMAND, LIMIT_S, background, commands, end, next_line

from rebalance_lab.analysis.parquet import FOLDER
from rebalance_lab.history.files import load, trial_folders
from rebalance_lab.kernel.interruption import SIGNALS
from rebalance_lab.report.files import PAGES

#: Shots of each signal at each command; for a thorough run set more.
SHOTS = int(os.environ.get("REBALANCE_LAB_SHOTS", "1"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(580 * SHOTS)]

#: Processes that the kernel kills with their parent end a moment after it.
_SETTLE_S = 20.0


#: Of the cluster that runs for all tests; it has one record.
TOPIC = "shots"

#: Folders of a store that are not trials.
OWN_FOLDERS = (FOLDER, PAGES)


@dataclass(frozen=True, slots=True)
class Shot:
    """`arguments`: {zookeeper}, {bootstrap} and {trial} in them stand for those that the tests run and stored.
    `within_s`: about as long as the command takes, or as its start takes. `foreground`: it runs until a signal ends
    it, and exits with 0 then."""

    arguments: tuple[str, ...]
    within_s: float
    foreground: bool = False

    @property
    def name(self) -> str:
        return "-".join(each.strip("{}") for each in self.arguments[:4] if not each.startswith("-"))

    @property
    def command(self) -> str:
        """`run`, or `history show`."""
        return " ".join(self.arguments[: 2 if self.arguments[0] in ("history", "whatif") else 1])

    @property
    def connects(self) -> bool:
        return bool({"{zookeeper}", "{bootstrap}"} & set(self.arguments))


COMMANDS = (
    Shot(("scenarios",), 1.2),
    Shot(("run", "zombie"), 1.6),
    Shot(("run", "zombie", "--world", "processes"), 10.0),
    Shot(("sweep", "herd", "--seeds", "400"), 6.0),
    Shot(("sweep", "leave", "--world", "processes", "--seeds", "4"), 10.0),
    Shot(("claims",), 14.0),
    Shot(("report",), 14.0),
    Shot(("tables", "--out", "tables"), 20.0),
    Shot(("demo",), 12.0),
    Shot(("zookeeper",), 4.0, foreground=True),
    Shot(("zookeeper", "--nodes", "3"), 6.0, foreground=True),
    Shot(("cluster", "--brokers", "2"), 6.0, foreground=True),
    Shot(("broker", "--zookeeper", "{zookeeper}", "--data", "data", "--id", "77"), 3.0, foreground=True),
    Shot(("join", "--zookeeper", "{zookeeper}", "--group", "g", "--topic", TOPIC), 3.0, foreground=True),
    Shot(("topics", "--bootstrap", "{bootstrap}", "--describe", TOPIC), 1.6),
    Shot(("produce", "--bootstrap", "{bootstrap}", "--topic", TOPIC), 3.0),
    Shot(("consume", "--bootstrap", "{bootstrap}", "--topic", TOPIC), 3.0),
    Shot(("replay", "{trial}"), 2.0),
    Shot(("shrink", "{trial}", "--check", "belief_overlap"), 10.0),
    Shot(("agree", "leave", "--live", "2", "--simulated", "20"), 10.0),
    Shot(("explore", "--records", "2"), 8.0),
    Shot(("history", "show", "{trial}"), 1.6),
    Shot(("history", "compare", "{trial}", "{trial}"), 1.6),
    Shot(("whatif", "assign"), 2.0),
    Shot(("whatif", "place"), 2.0),
)

#: Commands that no shot is aimed at, and why. There are none.
NOT_SHOT_AT: dict[str, str] = {}

#: They use temporary folders, and remove those of their killed predecessors.
SWEEPERS = ("claims", "report", "tables", "zookeeper", "cluster")


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
    """A folder to run in, and the place for temporary folders. `others`: processes below the tests' that were there
    before. `given`: what stands for the names in a shot's arguments. `nothing`: a standard input that stays open, and
    from which nothing comes."""

    folder: Path
    others: frozenset[psutil.Process]
    given: dict[str, str]
    nothing: int

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def start(self, arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
        return self.start_process([*COMMAND, *(each.format_map(self.given) for each in arguments)])

    def start_process(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "TMPDIR": str(self.temporary)}
        with (self.folder / "out").open("wb") as out, (self.folder / "err").open("wb") as err:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env=environment,
                stdin=self.nothing,
                stdout=out,
                stderr=err,
            )

    def processes(self) -> list[psutil.Process]:
        """Those that a command started, and that run: all below the tests' process, which adopts the orphans."""
        return [each for each in _below() if each not in self.others and _runs(each)]

    def semaphores(self) -> set[Path]:
        """Those in shared memory that its processes use now."""
        return {Path(path) for each in self.processes() for path in _mapped(each) if path.startswith("/dev/shm/sem.")}

    @property
    def errors(self) -> str:
        return (self.folder / "err").read_text("utf-8", "replace")

    def unfinished(self) -> list[str]:
        """Folders of the store that are not whole trials, and temporary ones."""
        store = self.folder / "trials"
        trials = set(trial_folders(store)) if store.exists() else set()
        found = {each for each in store.iterdir() if each.is_dir()} - trials if store.exists() else set()
        for trial in trials:
            load(trial)
        found -= {store / each for each in OWN_FOLDERS}
        return sorted(each.name for each in (*found, *self.temporary.iterdir(), *self.folder.glob(".*.part")))


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


@pytest.fixture
def place(tmp_path: Path, adopted: None, given: dict[str, str]) -> Iterator[Place]:
    reading, writing = os.pipe()
    found = Place(tmp_path, frozenset(_below()), given, reading)
    found.temporary.mkdir()
    try:
        yield found
    finally:
        for each in found.processes():  # a failed test leaves some
            each.kill()
        for each in _below() - found.others:
            with suppress(ChildProcessError):
                os.waitpid(each.pid, 0)
        os.close(reading)
        os.close(writing)


def _mapped(process: psutil.Process) -> list[str]:
    try:
        return [each.path for each in process.memory_maps()]
    except (psutil.Error, OSError):
        return []


def _all_ended(place: Place) -> list[str]:
    """The processes that are still there after a generous time."""
    give_up = time.monotonic() + _SETTLE_S
    while (left := place.processes()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return [str(each) for each in left]


def test_every_command_is_shot_at() -> None:
    there = {name for name, _ in commands()}
    assert {each.command for each in COMMANDS} | NOT_SHOT_AT.keys() == there
    assert all(len(reason) > 10 for reason in NOT_SHOT_AT.values())


def _moments(shot: Shot, number: int) -> Iterator[float]:
    rng = random.Random(f"{shot.arguments} {number}")
    for each in range(SHOTS):
        yield (each + rng.random()) / SHOTS * shot.within_s


def _wait_for_the_lab(process: subprocess.Popen[bytes]) -> None:
    """Wait until the lab has handlers of its own, or the process has ended. Python has none for SIGTERM; on SIGINT it
    prints a traceback while it starts, which no program can change."""
    terminable = 1 << (signal.SIGTERM - 1)
    while process.poll() is None and not _caught_signals(process.pid) & terminable:
        time.sleep(0.001)


def _caught_signals(pid: int) -> int:
    """The mask of the signals for which the process has handlers."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return int(line.split()[1], 16)
    return 0


def _fire(shot: Shot, number: signal.Signals, after_s: float, place: Place, stored: Path) -> tuple[int, set[Path]]:
    """Run the command, send the signal, and wait; returns the exit code, and the semaphores that were in use."""
    if shot.arguments[0] in ("claims", "report", "tables") and not (place.folder / "trials").exists():
        subprocess.run(["cp", "-r", str(stored), str(place.folder / "trials")], check=True)
    shutil.rmtree(place.folder / "tables", ignore_errors=True)
    process = place.start(shot.arguments)
    used: set[Path] = set()
    _wait_for_the_lab(process)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        used = place.semaphores()
        process.send_signal(number)
    return process.wait(LIMIT_S), used


@pytest.mark.parametrize("number", SIGNALS, ids=lambda each: each.name)
@pytest.mark.parametrize("shot", COMMANDS, ids=lambda each: each.name)
def test_a_signal_ends_all_and_leaves_nothing(shot: Shot, number: signal.Signals, place: Place, stored: Path) -> None:
    for after_s in _moments(shot, number):
        code, semaphores = _fire(shot, number, after_s, place, stored)
        told = f"{number.name} after {after_s:.3f} s: exit {code}, stderr {place.errors!r}"
        # 0 to 2: it had ended before. A negative code: Python had begun to end.
        assert code in ((0, -number) if shot.foreground else (0, 1, 2, 128 + number, -number)), told
        assert "Traceback" not in place.errors, told
        if code == 128 + number:
            assert place.errors.splitlines()[-1].startswith("rebalance-lab: interrupted by"), told
        assert _all_ended(place) == [], told
        assert place.unfinished() == [], told
        assert [each for each in semaphores if each.exists()] == [], told


@pytest.mark.parametrize(
    "shot", [each for each in COMMANDS if each.arguments[0] != "scenarios"], ids=lambda each: each.name
)
def test_after_a_kill_the_next_command_tidies_up(shot: Shot, place: Place, stored: Path) -> None:
    for after_s in _moments(shot, signal.SIGKILL):
        _fire(shot, signal.SIGKILL, after_s, place, stored)
        assert _all_ended(place) == []
    again = place.start(shot.arguments if shot.command in SWEEPERS else ("run", "herd"))
    if shot.foreground and shot.command in SWEEPERS:
        _wait_for_answer(place, again)
        again.send_signal(signal.SIGTERM)
    assert again.wait(LIMIT_S) in (0, 2), place.errors  # 2: trials may be too few for a verdict
    assert [each for each in place.unfinished() if not each.startswith(".")] == []


#: It starts a child, says which, and ends. The child has no environment, a session of its own, and no parent any more.
_HIDES = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, start_new_session=True)
print(child.pid, flush=True)
"""


def test_a_child_that_hides_is_found(place: Place) -> None:
    assert place.start_process([sys.executable, "-c", _HIDES]).wait(LIMIT_S) == 0
    (child,) = place.processes()
    assert child.pid == int((place.folder / "out").read_text())
    assert (child.ppid(), child.environ()) == (os.getpid(), {})


def _wait_for_answer(place: Place, process: subprocess.Popen[bytes]) -> None:
    while not (place.folder / "out").read_bytes():
        assert process.poll() is None, place.errors
        time.sleep(0.05)
