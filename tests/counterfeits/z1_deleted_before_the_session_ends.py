"""Z1: a server that takes a session's znodes away a moment before the session ends."""

from __future__ import annotations

from counterfeit import Counterfeit, trial
from counterfeit_deletions import one_by_one

COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="The server deletes a dead session's znodes one by one, as if the dead member had asked for it, and only "
    "then closes the session: id and owners are gone while the session is open.",
    false=lambda seed: one_by_one(seed, lambda _path: True),
    honest=lambda seed: trial("crash", seed),
)
