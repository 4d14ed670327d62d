"""Z9: partitions that stay unowned although every member's rebalance succeeded."""

from counterfeit import Counterfeit, trial

COUNTERFEIT = Counterfeit(
    claim="Z9",
    check="stays_wrong",
    world="A partition has no owner at rest, as in the claim, but no member gave up: its owner forgot to claim it.",
    false=lambda seed: trial("uncontrolled", seed, control=True, plant="never-claim-last"),
    honest=lambda seed: trial("uncontrolled", seed),
)
