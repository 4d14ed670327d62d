"""Signs of life of commands that run long, with minutes of a few milliseconds."""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from typing import Any

import pytest

from rebalance_lab.cli import main as command_line
from rebalance_lab.cli.heartbeat import signs_of_life
from rebalance_lab.cli.main import MAY_RUN_LONG, main
from rebalance_lab.explore.search import explore

LIMIT_S = 30


class Stderr:
    """Notes the lines that are written to it."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.text = ""
        self._terminal = terminal
        self._written = threading.Condition()

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> int:
        with self._written:
            self.text += text
            self._written.notify_all()
        return len(text)

    def flush(self) -> None:
        pass

    def holds(self, line: str) -> None:
        with self._written:
            assert self._written.wait_for(lambda: line in self.text, LIMIT_S), self.text


def replaced(monkeypatch: pytest.MonkeyPatch, *, terminal: bool = False) -> Stderr:
    """Stderr during a test; pytest would put its own back after a fixture."""
    stderr = Stderr(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    return stderr


def test_it_says_how_long_it_has_been_running(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    with signs_of_life(minute_s=0.002, quiet_s=0):
        stderr.holds("rebalance-lab: still running after 20 min\n")
    told = [line.split()[-2] for line in stderr.text.splitlines()]
    assert told[:5] == ["1", "2", "5", "10", "20"]


def test_nothing_comes_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    before = threading.active_count()
    with signs_of_life(minute_s=0.002, quiet_s=0):
        stderr.holds("after 1 min")
    assert threading.active_count() == before


def test_what_has_just_said_something_needs_no_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    looked = threading.Event()

    def said_s() -> float:
        looked.set()
        return time.monotonic()

    monkeypatch.setattr("rebalance_lab.cli.heartbeat.last_said_s", said_s)
    with signs_of_life(minute_s=0.002, quiet_s=10):
        assert looked.wait(LIMIT_S)
    assert stderr.text == ""


def test_a_terminal_shows_a_spinner_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, terminal=True)
    before = threading.active_count()
    with signs_of_life(minute_s=0.002, quiet_s=0):
        assert threading.active_count() == before


def test_a_command_that_takes_long_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = replaced(monkeypatch)
    real = explore

    def slow(*arguments: Any, **options: Any) -> object:
        stderr.holds("rebalance-lab: still running after 1 min\n")
        return real(*arguments, **options)

    monkeypatch.setattr("rebalance_lab.cli.explore.explore", slow)
    monkeypatch.setattr(command_line, "signs_of_life", partial(signs_of_life, minute_s=0.002, quiet_s=0))
    assert main(["explore", "--records", "1", "--json"]) == 0


def test_commands_that_wait_for_others_give_none() -> None:
    assert {"run", "sweep", "explore", "claims", "report"} <= MAY_RUN_LONG
    assert not {"consume", "produce", "join", "broker", "cluster", "zookeeper", "topics"} & MAY_RUN_LONG
