"""The part of the command line that uses Spark: from a store to an Analysis.

Spark is imported only where it is needed, so that other commands do not wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rebalance_lab.analysis.results import Analysis
from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import DEFAULT_STORE
from rebalance_lab.cli.terminal import progress
from rebalance_lab.history.files import trial_folders

#: The trials whose ownership intervals are wanted: their ids, or a function that chooses them.
Wanted = Sequence[str] | Callable[[Analysis], Sequence[str]]


def analysed(store: Path, wanted: Wanted = ()) -> Analysis:
    """Let Spark read a store. Ownership intervals take time, so only those `wanted` are computed. Raises Failure,
    also if the store was named and does not exist. (A missing default store only means that nothing was run yet.)"""
    if store.exists():
        return _analysed(store, wanted)
    told = f"There is no store {store}: nothing was tested. `run` and `sweep` create one"
    if store != DEFAULT_STORE:
        raise Failure(f"{told}; --store names another.")
    print(f"{told}.", file=sys.stderr)
    with TemporaryDirectory(prefix="rebalance-lab-store-") as empty:
        return _analysed(Path(empty), wanted)


def _analysed(store: Path, wanted: Wanted) -> Analysis:
    from rebalance_lab.analysis.analyse import analyse  # noqa: PLC0415

    count = len(trial_folders(store))
    try:
        with spoken(), progress().status(f"Spark reads {count} trials of {store}"):
            return analyse(store, intervals_for=wanted)
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise


def _was_interrupted(error: BaseException) -> bool:
    """Whether an error was raised while a Ctrl-C was handled: Spark reacts to one with errors of its own."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__cause__ or behind.__context__
    return behind is not None
