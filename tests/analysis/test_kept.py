"""Files that keep what was computed once, and the fingerprint of the code that computed it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_lab.analysis import kept as kept_module
from rebalance_lab.analysis.kept import JUDGING_ROOMS, code_that_judges, keep, kept, key_of
from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history import intervals

KEY = key_of("code", "history")
CLEAN = Finding(Outcome.CLEAN, "")
BODY = b'{"findings":[]}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_what_was_kept_comes_back_under_its_key_only(path: Path) -> None:
    assert kept(path, KEY) is None
    keep(path, KEY, BODY)
    assert kept(path, KEY) == BODY
    assert kept(path, key_of("other code", "history")) is None
    keep(path, key_of("other code", "history"), b"{}")
    assert kept(path, KEY) is None


def test_a_file_that_was_cut_anywhere_keeps_nothing(path: Path) -> None:
    keep(path, KEY, BODY)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert kept(path, KEY) is None, length


def test_a_file_with_any_other_byte_keeps_nothing(path: Path) -> None:
    keep(path, KEY, BODY)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert kept(path, KEY) is None, whole[at:]
    path.write_bytes(whole + b"\n")
    assert kept(path, KEY) is None


def test_two_writers_leave_one_whole_file_or_none(path: Path) -> None:
    bodies = {key_of(n): b"%d" % n * 100_000 for n in range(2)}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(50):
            list(pool.map(keep, [path] * 2, bodies, bodies.values()))
            for key, body in bodies.items():
                assert kept(path, key) in (body, None)


def test_a_place_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    keep(tmp_path / "missing" / "file", KEY, BODY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [("history", "code"), ("code",), ("codehistory",), ("code", "history", None)])
def test_each_part_of_a_key_counts(other: tuple[object, ...]) -> None:
    assert key_of(*other) != KEY


def test_the_code_is_known_unless_a_check_or_intervals_come_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    known = code_that_judges()
    assert known is not None
    with monkeypatch.context() as declared:
        declared.setitem(intervals.REGISTERED, "toy", lambda _: [])
        assert code_that_judges() is None
    assert code_that_judges() == known
    monkeypatch.setitem(CHECKS, "outside", replace(CHECKS["disagreement"], name="outside", judge=lambda _: CLEAN))
    assert code_that_judges() is None


def test_the_code_differs_with_every_source_and_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in JUDGING_ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "one.py").write_text("1")
    monkeypatch.setattr(kept_module, "_ROOT", tmp_path)
    fingerprint = kept_module._fingerprint.__wrapped__
    seen = {fingerprint()}
    for room in JUDGING_ROOMS:
        (tmp_path / room / "one.py").write_text("2")
        seen.add(fingerprint())
    (tmp_path / "checks" / "one.py").rename(tmp_path / "checks" / "two.py")
    seen.add(fingerprint())
    monkeypatch.setattr(kept_module, "version", lambda _: "another")
    seen.add(fingerprint())
    assert len(seen) == len(JUDGING_ROOMS) + 3


def test_judging_loads_the_code_of_the_judging_rooms_only() -> None:
    """With the faults, of which the checks ask for the kinds: they are loaded last, because they load the world. And
    with `java`, which only says how Spark's JVM is started."""
    program = (
        "import sys, rebalance_lab.checks, rebalance_lab.analysis.summarised\n"
        "print(*(name for name in sys.modules if name.startswith(('rebalance_lab.', 'zkconsumer', 'controller'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rooms = {name.removeprefix("rebalance_lab.").split(".")[0] for name in done.stdout.split()}
    assert rooms <= {*JUDGING_ROOMS, "java"}
    assert {"checks", "history", "analysis"} <= rooms
