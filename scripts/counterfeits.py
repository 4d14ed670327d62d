"""Write docs/counterfeits.md from tests/counterfeits: `python scripts/counterfeits.py`.

The script runs every counterfeit and its honest twin with seed 0, and quotes the finding of the check for both.
All trials are simulated, so the page is the same every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "counterfeits"))

from counterfeit import Counterfeit, counterfeits  # noqa: E402

from rebalance_lab.checks import Finding  # noqa: E402

PAGE = ROOT / "docs" / "counterfeits.md"

HEAD = """# Counterfeits

<!-- Written by scripts/counterfeits.py. Do not edit. -->

A check can only be trusted if it can fail. So each check is tested against *counterfeits*: worlds, members or histories
with one deliberate fault that a person could overlook. In a counterfeit of a claim the claim is false, and the
check that judges the claim must say so. Each counterfeit has an *honest twin*, the same trial without the fault, of
which the check must say the opposite. So a check that always says the same fails.

- Most claims say what always holds. Their counterfeits must be *violated*, and their twins *clean*.
- Some claims say what can happen, and their checks look for it. In their counterfeits it does not happen: they must be
  *clean*, and their twins *violated*.
- Checks that do not judge a claim have counterfeits of their own, which must be *violated*.

Each counterfeit is a small file in `tests/counterfeits`; the table gives its name. `make test` runs each one and
its twin with several seeds, and fails if a claim or a check has none. The findings below are those of seed 0.
"""

COLUMNS = ("Counterfeit", "Check", "What is false, and why it could be believed", "What the check says", "Of the twin")


def page(rows: Mapping[str, str]) -> str:
    """The whole page. `rows`: of each counterfeit's name, what `row` makes of it."""
    found = dict(counterfeits())
    claims = sorted(
        (name for name, one in found.items() if one.claim is not None), key=lambda name: _order(name, found)
    )
    others = [name for name, one in found.items() if one.claim is None]
    return "\n".join(
        [
            *(HEAD, "## Of claims", "", _row(["Claim", *COLUMNS]), _row(["---"] * (len(COLUMNS) + 1))),
            *(rows[name] for name in claims),
            *("", "## Of checks alone", "", _row(COLUMNS), _row(["---"] * len(COLUMNS))),
            *(rows[name] for name in others),
            "",
        ]
    )


def row(name: str, one: Counterfeit, of_false: Finding | None, of_honest: Finding | None) -> str:
    """The line of a counterfeit. `of_false`, `of_honest`: what its check says of it and of its twin, with seed 0."""
    cells = [f"`{name}`", f"`{one.check}`", one.world, _said(one, of_false), _said(one, of_honest)]
    return _row(cells if one.claim is None else [one.claim, *cells])


def _order(name: str, found: dict[str, Counterfeit]) -> tuple[int, str]:
    """The sort key of a claim, by number: Z2 before Z10."""
    digits = "".join(each for each in found[name].claim or "" if each.isdigit())
    return int(digits or 0), name


def _said(one: Counterfeit, finding: Finding | None) -> str:
    if finding is None:
        raise SystemExit(f"counterfeits: {one.check} does not apply to a counterfeit of {one.name}")
    return f"*{finding.outcome}*: {finding.why}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    made = {name: row(name, one, *map(one.finding, (one.false(0), one.honest(0)))) for name, one in counterfeits()}
    PAGE.write_text(page(made), "utf-8")


if __name__ == "__main__":
    main()
