"""unequal_views: brokers that fence other lives, and orders that name none."""

from functools import partial

from counterfeit import Counterfeit
from counterfeit_lives import late_order, late_order_for_any_life

from rebalance_lab.scenarios.former_life import LateOrder

COUNTERFEIT = Counterfeit(
    claim=None,
    check="unequal_views",
    world="Brokers refuse orders for a former life, and every order is of the controller that reigns; but orders do "
    "not name the life for which they are meant, and an update of metadata for a former one comes last.",
    false=partial(late_order_for_any_life, order=LateOrder.METADATA),
    honest=partial(late_order, order=LateOrder.METADATA),
)
