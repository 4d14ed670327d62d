"""unowned_window: the settling delay in a live trial, in which slow attempts might extend their own bound."""

from counterfeit import Counterfeit
from counterfeit_forging import live
from unowned_window_settling_delay import COUNTERFEIT as SIMULATED

COUNTERFEIT = Counterfeit(
    claim=None,
    check="unowned_window",
    world="Members wait ten seconds between release and claim, in a live trial. A busy machine makes attempts slow "
    "too, but it is the requests that take longer.",
    false=lambda seed: live(SIMULATED.false(seed)),
    honest=lambda seed: live(SIMULATED.honest(seed)),
)
