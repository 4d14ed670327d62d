"""contradiction: one member deals the partitions of the same view in the opposite order."""

from counterfeit import Counterfeit, trial
from z8_one_view_two_rules import false

COUNTERFEIT = Counterfeit(
    claim=None,
    check="contradiction",
    world="All members deal from one view and each gets its fair number of partitions. One of them counts partitions "
    "from the last to the first, so it wants what is another's.",
    false=false,
    honest=lambda seed: trial("split-brain", seed),
)
