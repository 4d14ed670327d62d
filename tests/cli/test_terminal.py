"""How prose is wrapped on stdout, and what of the logs is on stderr."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from rebalance_lab.cli.terminal import OURS, answer, say, set_up_logs

WORDS = " ".join(["partition"] * 30)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_prose_is_wrapped_at_80_columns_where_no_width_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    say(WORDS, lead="[bold]why[/]  ")
    first, *others = lines(capsys)
    assert first.startswith("why  partition") and all(line.startswith("     partition") for line in others)
    assert 70 < max(map(len, [first, *others])) <= 80
    assert " ".join([first, *others]).split() == ["why", *WORDS.split()]


@pytest.mark.parametrize("columns", [40, 200])
def test_prose_is_as_wide_as_columns_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    say(WORDS)
    assert columns - len(" partition") <= max(map(len, lines(capsys))) <= columns
    assert answer().width == columns


@pytest.mark.parametrize("columns", ["", "wide"])
def test_tables_have_room_where_no_width_is_known(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert answer().width == 120


def test_a_word_longer_than_a_line_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    path = "/consumers/" + "x" * 100
    say(f"the owner znode is {path} now", lead="  ")
    assert lines(capsys) == ["  the owner znode is", f"  {path}", "  now"]


def test_empty_lines_stay_and_markup_is_taken_at_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    say("\na [b] c", markup=False)
    say("")
    assert lines(capsys) == ["", "a [b] c", ""]


@pytest.fixture
def logs() -> Iterator[None]:
    """Whoever sets logs up does so for the process."""
    root, ours = logging.getLogger(), logging.getLogger(OURS)
    handlers, level = root.handlers[:], ours.level
    yield
    root.handlers[:] = handlers
    ours.setLevel(level)


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize(
    ("verbose", "told"),
    [
        (False, [r"WARNING a server hangs"]),
        (True, [r"INFO    a trial ended", r"WARNING a server hangs", r"WARNING of a library"]),
    ],
)
def test_warnings_of_ours_are_on_stderr_and_with_v_all_logs(
    capsys: pytest.CaptureFixture[str], verbose: bool, told: list[str]
) -> None:
    set_up_logs(verbose=verbose)
    logging.getLogger(f"{OURS}.cli.run").info("a trial %s", "ended")
    logging.getLogger(f"{OURS}.world").warning("a server hangs")
    logging.getLogger("kazoo").warning("of a library")
    logging.getLogger("kazoo").info("of no use")
    out, err = capsys.readouterr()
    assert out == ""
    assert [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in err.splitlines()] == told
