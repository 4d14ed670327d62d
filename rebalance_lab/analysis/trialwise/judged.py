"""What a history shows of its trial, kept beside it: it is judged once (`analysis.kept`).

Whoever runs trials keeps it as soon as a trial is stored, because then the history is in memory. Nothing here needs
Spark, whose workers call it for trials that were not judged yet.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rebalance_lab.analysis.kept import code_that_judges, keep, kept, key_of
from rebalance_lab.analysis.results import OfTrial, TrialOutcome
from rebalance_lab.analysis.store import document_of, looks, named_by_folder
from rebalance_lab.analysis.trialwise.credentials import unproved
from rebalance_lab.analysis.trialwise.episodes import episodes
from rebalance_lab.analysis.trialwise.rows import herd_costs_of, outcomes_of
from rebalance_lab.checks import judge
from rebalance_lab.checks.faults import faults
from rebalance_lab.checks.model import Finding
from rebalance_lab.history.files import History
from rebalance_lab.kernel.garbage import without_collector

Row = dict[str, Any]

#: The file in a trial's folder that keeps its judgement.
JUDGEMENT_FILE = ".judgement"

_OF_TRIAL = frozenset(OfTrial.__dataclass_fields__)


class Judged(msgspec.Struct, frozen=True):
    """A judgement, and what the trial's files looked like when their events were read (`store.looks`)."""

    looks: str
    judgement: Row


def judgement(history: History, findings: Mapping[str, Finding] | None = None) -> Row:
    """The columns of RESULTS (`tables.trial_results`) that come from the events of a trial. `findings`: of
    `checks.judge`, where they are known already. Raises HistoryError."""
    with without_collector():
        found = faults(history)
        outcomes = outcomes_of(history.trial, judge(history) if findings is None else findings)
        return {
            "events": len(history.events),
            "faults": len(found),
            "bitten": sum(fault.why_not_bitten is None for fault in found),
            "unproved": unproved(history),
            "findings": [_finding(each) for each in outcomes],
            "episodes": _plain(episodes(history)),
            "herd_costs": _plain(herd_costs_of(history)),
        }


def _finding(outcome: TrialOutcome) -> Row:
    row = {name: getattr(outcome, name) for name in _names(TrialOutcome) if name not in _OF_TRIAL}
    return row | {"witness": [{"actor": actor, "n": n} for actor, n in outcome.witness]}


def _plain(rows: Iterable[Any]) -> list[Row]:
    return [{name: getattr(row, name) for name in _names(type(row))} for row in rows]  # type: ignore[arg-type]


@cache
def _names(rows: Any) -> tuple[str, ...]:
    """The fields of a table's rows; none of them is a dataclass itself."""
    return tuple(field.name for field in dataclasses.fields(rows))


def keep_judgement(folder: Path, history: History, findings: Mapping[str, Finding] | None = None) -> None:
    """Keep the judgement of a trial that was just stored there, unless the code that judges is not known."""
    code = code_that_judges()
    if code is None or not history.trial.history_sha256:
        return
    seen, _ = looks(folder)
    trial = named_by_folder(history.trial, folder)
    named = history if trial == history.trial else History(trial, history.events)
    known = judgement(named, findings)  # of the history that was judged: it keeps what its checks have worked out
    key = judgement_key(code, document_of(trial), trial.history_sha256)
    keep_judged(folder, key, Judged(seen, known))


def keep_judged(folder: Path, key: str, judged: Judged) -> None:
    keep(folder / JUDGEMENT_FILE, key, msgspec.json.encode(judged))


def kept_judged(folder: Path, key: str) -> Judged | None:
    body = kept(folder / JUDGEMENT_FILE, key)
    try:
        return None if body is None else msgspec.json.decode(body, type=Judged)
    except msgspec.ValidationError:  # of a lab whose judgements had another form
        return None


def judgement_key(code: str, document: str, history_sha256: str) -> str:
    """`document`: the trial as JSON, as it is named in its store."""
    return key_of(code, document, history_sha256)
