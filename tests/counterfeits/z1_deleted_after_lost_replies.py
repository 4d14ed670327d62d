"""Z1: a server that deletes a dead member's owner znodes before the session ends, behind requests without answers."""

from __future__ import annotations

from counterfeit import Counterfeit, trial
from counterfeit_deletions import one_by_one
from counterfeit_forging import without

from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History


def _unanswered(history: History) -> History:
    """No reply to a `delete` was recorded."""
    return without(history, lambda event: event.kind is Kind.OK and event.of("op") == "delete")


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The server deletes a dead session's owner znodes one by one and then closes the session. Of each path its "
    "owner had asked for a deletion in an earlier rebalance and got no answer.",
    false=lambda seed: _unanswered(one_by_one(seed, lambda path: "/owners/" in path)),
    honest=lambda seed: _unanswered(trial("crash", seed)),
)
