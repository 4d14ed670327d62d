"""The ledger's conditions on a trial's parameters, the plain way."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from rebalance_lab.analysis.ledger import Condition

OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def holds(parameters: Mapping[str, str], condition: Condition) -> bool:
    """Whether it holds of a trial with these parameters, as they are typed. False if the trial lacks the parameter."""
    name, bound = condition.parameter, condition.bound
    if name not in parameters:
        return False
    compare = OPERATORS[condition.operator]
    if bound is None:
        return bool(compare(parameters[name], condition.text))
    return bool(compare(float(parameters[name]), float(parameters.get(bound, bound))))
