"""What a counterfeit is: a world, a member or a history in which a claim is false in a way a person
could believe, while everything else is right; and its honest twin, in which the claim holds.

One small file each, which holds a `COUNTERFEIT` and is named after its claim
(`z1_server_keeps_owners.py`), or after its check where the check serves no claim. Files are found by
`counterfeits()`; `test_counterfeits.py` holds every check to them, and `scripts/counterfeits.py`
writes the table of `docs/counterfeits.md` from them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rebalance_lab.analysis.ledger import Quantifier, read_ledger
from rebalance_lab.checks import CHECKS, Finding, Outcome
from rebalance_lab.history.files import History
from rebalance_lab.trials.scenario import make_plan, scenario
from rebalance_lab.trials.stages.simulated.stage import simulate


@dataclass(frozen=True, slots=True)
class Counterfeit:
    """`claim`: its id in the ledger, None where the counterfeit is of the check alone; `check`: the
    check that must see through it.

    `world`: one sentence for the table: what is false here, and why a person could believe it.
    `false` and `honest` make a history from a seed; both are asked for `seeds` seeds, from 0.
    """

    claim: str | None
    check: str
    world: str
    false: Callable[[int], History]
    honest: Callable[[int], History]
    seeds: int = 2

    @property
    def name(self) -> str:
        """How its file's name begins: the claim, or the check."""
        return self.claim.lower() if self.claim is not None else self.check

    @property
    def _existential(self) -> bool:
        return self.claim is not None and read_ledger().claims[self.claim].quantifier is Quantifier.EXISTS

    @property
    def convicted(self) -> Outcome:
        """What the check must say of the counterfeit: clean where the claim asserts that an anomaly can
        happen (here it does not), violated where the claim, or the check, says what always holds."""
        return Outcome.CLEAN if self._existential else Outcome.VIOLATED

    @property
    def acquitted(self) -> Outcome:
        """What the check must say of the honest twin: the opposite."""
        return Outcome.VIOLATED if self._existential else Outcome.CLEAN

    def finding(self, history: History) -> Finding | None:
        """What the check says of a history; None where it does not apply."""
        check = CHECKS[self.check]
        return check.judge(history) if check.applies(history) else None

    def outcome(self, history: History) -> Outcome | None:
        """The outcome of that."""
        found = self.finding(history)
        return None if found is None else found.outcome


#: Records that clients write, where a counterfeit does not need more. With the 200 of the scenarios a trial takes twice
#: as long.
FEW = {"messages": "80"}


def trial(name: str, seed: int = 0, *, settings: Mapping[str, str | int] | None = None, **plan: Any) -> History:
    """A simulated trial's history. `plan`: as `make_plan` takes it (rules, control)."""
    known = {each.name for each in scenario(name).parameters}
    few = {key: value for key, value in FEW.items() if key in known}
    history, _ = simulate(make_plan(name, seed=seed, settings={**few, **(settings or {})}, **plan))
    return history


def counterfeits() -> Iterator[tuple[str, Counterfeit]]:
    """(file name without .py, counterfeit), in alphabetical order.

    Raises TypeError for a file that holds no COUNTERFEIT, or one of another claim (or check) than its
    name begins with.
    """
    for name in sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if name.startswith(("test_", "counterfeit")):
            continue
        module = importlib.import_module(name)
        found = getattr(module, "COUNTERFEIT", None)
        if not isinstance(found, Counterfeit) or not name.startswith(f"{found.name}_"):
            raise TypeError(f"tests/counterfeits/{name}.py must hold a COUNTERFEIT of the claim or check in its name")
        yield name, found
