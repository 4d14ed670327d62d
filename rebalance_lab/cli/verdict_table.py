"""Verdicts as a table of 80 columns: the statement of each claim in a line, and under it a row for each reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape

from rebalance_lab.analysis.ledger import Status, brief_of
from rebalance_lab.analysis.results import Verdict
from rebalance_lab.cli.terminal import STYLES
from rebalance_lab.report.text import shortened

_CLAIM, _INDENT, _READING, _LIVE, _SIMULATED = 6, 2, 40, 9, 11
_STATEMENT = 80 - _CLAIM

HOW_TO_READ = (
    "Live and simulated say in how many trials the statement held; reproduced means that they confirm it, and refuted "
    "that they contradict it."
)

#: Marks a surprise, and what it means.
_MARK = "!"
SURPRISES = f"A verdict with {_MARK} is not the one that the ledger expected."


def verdict_lines(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The lines of the table, with rich's markup, for readings in their order."""
    what = f"{'claim':{_CLAIM}}{'statement, and under which rules':{_INDENT + _READING - _CLAIM}}"
    yield f"[bold]{what}{'live':>{_LIVE}}{'simulated':>{_SIMULATED}}  verdict[/]"
    shown = None
    for verdict in verdicts:
        if shown != (verdict.claim, verdict.statement):
            shown = (verdict.claim, verdict.statement)
            statement = shortened(brief_of(verdict.claim, verdict.reading) or verdict.statement, _STATEMENT)
            yield f"[bold]{verdict.claim:{_CLAIM}}[/]{escape(statement)}"
        yield _row(verdict)
    if any(verdict.status is Status.SURPRISE for verdict in verdicts):
        yield SURPRISES


def _row(verdict: Verdict) -> str:
    reading = escape(f"{shortened(verdict.reading, _READING):{_READING}}")
    live, simulated = (_held(verdict, world) for world in ("live", "simulated"))
    surprise = verdict.status is Status.SURPRISE
    style = STYLES[verdict.status if surprise else verdict.verdict]
    came = f"[{style}]{verdict.verdict}{' ' + _MARK if surprise else ''}[/]"
    return f"{'':{_INDENT}}{reading}{live:>{_LIVE}}{simulated:>{_SIMULATED}}  {came}"


def _held(verdict: Verdict, world: str) -> str:
    """`5 of 5`: in how many of a world's decided trials the statement held; `–` without any."""
    found = next((each for each in verdict.frequencies if each.world == world), None)
    return f"{found.shown} of {found.decided}" if found is not None and found.decided else "–"
