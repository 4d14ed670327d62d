"""stale_role: brokers that fence other lives, and orders that name none."""

from functools import partial

from counterfeit import Counterfeit
from counterfeit_lives import late_order, late_order_for_any_life

from rebalance_lab.scenarios.former_life import LateOrder

COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_role",
    world="Brokers refuse orders for a former life, and every order is of the controller that reigns; but orders do "
    "not name the life for which they are meant, and a deletion for a former one takes the replica of a topic that was "
    "created anew.",
    false=partial(late_order_for_any_life, order=LateOrder.DELETION),
    honest=partial(late_order, order=LateOrder.DELETION),
)
