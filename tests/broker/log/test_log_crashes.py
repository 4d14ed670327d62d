"""Crashes of a broker's log, torn at any byte: what was written outlives the process, what was synced the power."""

from __future__ import annotations

import pytest
from log_crashes import run_lives
from lying_storage import LyingStorage
from thorough import usual

LIVES = 5


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_thousand_crashes_lose_nothing_that_they_may_not(first):
    told = [line for seed in range(first, first + 50) for line in run_lives(seed, LIVES).warnings]
    assert any("cut off" in line for line in told), "no crash has torn a batch: the test proves nothing"
    assert any("were lost" in line for line in told), "no crash has left a gap: the test proves nothing"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, usual(2000, 5000), 500))
def test_thousands_of_crashes_lose_nothing_that_they_may_not(first):
    for seed in range(first, first + 500):
        run_lives(seed, LIVES)


@pytest.mark.parametrize("lie", ["sync", "sync_folder"])
def test_a_disk_that_lies_is_noticed(lie):
    def lives() -> None:
        for seed in range(200):
            run_lives(seed, LIVES, lambda *arguments: LyingStorage(*arguments, lie=lie))

    with pytest.raises(AssertionError):
        lives()
