"""Z7a: half of the members rebalance for nobody."""

from counterfeit import Counterfeit
from counterfeit_sleepers import awake, half_asleep

COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="missed_watch",
    world="Eight members on four partitions. The four that own nothing are not notified of changes and do not "
    "rebalance; as they own nothing after a change either, every partition has its owner all the same.",
    false=half_asleep,
    honest=awake,
)
