"""Verdicts as a table of a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.text import Text
from verdict_story import reproduced

from rebalance_lab.analysis.ledger import BRIEF_LETTERS, Judgement, Status, read_ledger
from rebalance_lab.analysis.results import Frequency, Verdict
from rebalance_lab.cli.demo import CLAIMS
from rebalance_lab.cli.verdict_table import SURPRISES, verdict_lines

HELD = reproduced(
    reading="described",
    statement="A member paused past its session goes on working beside its successor.",
    simulated=20,
    why="",
    frequencies=(Frequency("live", 1, 1, 0.2, 1.0, 0), Frequency("simulated", 20, 20, 0.8, 1.0, 0)),
)


def lines(*verdicts: Verdict) -> list[str]:
    return [Text.from_markup(line).plain for line in verdict_lines(verdicts)]


def test_a_statement_stands_once_over_its_readings() -> None:
    shipped = replace(HELD, reading="shipped", frequencies=(Frequency("simulated", 0, 20, 0.0, 0.2, 3),))
    assert lines(HELD, shipped) == [
        "claim statement, and under which rules         live  simulated  verdict",
        "Z10   A member paused past its session goes on working beside its successor.",
        "  described                                  1 of 1   20 of 20  reproduced",
        "  shipped                                         –    0 of 20  reproduced",
    ]


def test_a_surprise_is_marked_and_the_mark_is_explained() -> None:
    *_, row, last = lines(replace(HELD, verdict=Judgement.REFUTED, status=Status.SURPRISE))
    assert row.endswith("refuted !")
    assert last == SURPRISES


@pytest.mark.parametrize("verdict", list(Judgement))
def test_no_line_is_longer_than_80_columns(verdict: Judgement) -> None:
    long = replace(HELD, claim="Z99a", statement="much " * 40, reading="shipped, " * 9, verdict=verdict,
                   status=Status.SURPRISE)  # fmt: skip
    assert max(map(len, lines(long))) <= 80


def test_no_statement_of_the_demo_is_cut() -> None:
    for claim, its, reading in read_ledger().readings():
        if claim in CLAIMS and not reading.waits_for:
            brief = reading.brief if reading.statement else its.brief
            assert len(brief or reading.statement or its.statement) <= BRIEF_LETTERS, (claim, reading.name)
