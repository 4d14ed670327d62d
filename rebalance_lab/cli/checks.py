"""`checks`: what each check says of a trial."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from rebalance_lab.analysis.ledger import read_ledger, run_of
from rebalance_lab.checks import CHECKS, Check
from rebalance_lab.checks.model import TOGETHER, Planted
from rebalance_lab.cli.options import JsonOption
from rebalance_lab.cli.terminal import print_json, say, whole
from rebalance_lab.report.text import listed
from rebalance_lab.trials.plan import LISTING_CHECKS, one_of, run_command
from rebalance_lab.trials.scenario import make_plan, scenario_names


def checks(
    name: Annotated[str | None, typer.Argument(help="The check that is shown.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Say what each check finds in a trial, or explain one.

    A check compares layers of a history: what a node believes, what the
    registry in ZooKeeper says, what had an effect, and single operations.
    It is violated if what is said of it happened.
    """
    scenario_names()  # those of subjects are known once the scenarios are
    if name is not None:
        one_of("check", name, CHECKS, LISTING_CHECKS)
    chosen = list(CHECKS.values()) if name is None else [CHECKS[name]]
    claims = _claims()
    if as_json:
        print_json({each.name: _shape(each, claims.get(each.name, [])) for each in chosen})
        return
    for each in chosen:
        _show(each, claims.get(each.name, []))
    if name is None:
        say("Explain one, with the commands that show it violated: rebalance-lab checks NAME")
    else:
        _explain(chosen[0])


def _claims() -> dict[str, list[str]]:
    """Check -> the claims of the ledger that its outcome decides."""
    found: dict[str, dict[str, None]] = {}
    for claim_id, claim, reading in read_ledger().readings():
        run = run_of(claim, reading)
        for check in () if run is None else run.checks:
            found.setdefault(check, {})[claim_id] = None
    return {check: list(claims) for check, claims in found.items()}


def _shape(check: Check, claims: list[str]) -> dict[str, object]:
    return {
        "meaning": check.meaning,
        "statement": check.statement,
        "together": check.together,
        "compares": check.compares,
        "claims": claims,
        "subjects": check.applies_to,
    }


def _show(check: Check, claims: list[str]) -> None:
    looks = f"{'compares' if len(check.compares) > 1 else 'looks at'} {listed(check.compares)}"
    decides = f"; decides {listed(claims, at_most=len(claims))}" if claims else ""
    say(f"[bold]{check.name}[/]: {looks}{decides}")
    say(escape(check.meaning), lead="    ")
    if check.statement is not None:
        say(escape(f"It tests: {check.statement}."), lead="    ")
    say("")


def _explain(check: Check) -> None:
    """Why its witness is wrong, and the commands of trials that it must report."""
    if check.together != TOGETHER:
        say(f"{escape(check.together)}\n")
    say("A planted bug violates it:")
    for each in check.plants:
        whole(f"    {_command(each)}")


def _command(planted: Planted) -> str:
    return run_command(
        make_plan(planted.scenario, plant=planted.bug, control=planted.control, settings=planted.settings)
    )
