"""Z7a: half of the members are not notified, in a live history, where a lower count was once taken for chance."""

from counterfeit import Counterfeit
from counterfeit_forging import live
from counterfeit_sleepers import awake, half_asleep

COUNTERFEIT = Counterfeit(
    claim="Z7a",
    check="herd_cost",
    world="As `z7a_half_asleep`, in a live history: half of the notifications, rebalances and reads are missing, as if "
    "notifications had melted together.",
    false=lambda seed: live(half_asleep(seed)),
    honest=lambda seed: live(awake(seed)),
)
