"""Z9: partitions that stay unowned although every member's rebalance succeeded."""

from counterfeit import Counterfeit, trial

#: Kafka's defaults: the last of four attempts begins after the stop of 4 s.
DEFAULTS = {"rebalance_backoff_ms": "2000", "session_timeout_ms": "6000"}

COUNTERFEIT = Counterfeit(
    claim="Z9",
    check="stays_wrong",
    world="A partition has no owner at rest, as in the claim, and attempts fail on another's claims; but the member "
    "does not give up: it succeeds with its last attempt, and forgets to claim one partition.",
    false=lambda seed: trial("uncontrolled", seed, settings=DEFAULTS, plant="never-claim-last"),
    honest=lambda seed: trial("uncontrolled", seed),
)
