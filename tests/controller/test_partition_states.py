"""Every legal and every illegal change of a partition's state."""

from __future__ import annotations

import itertools

import pytest

from controller.partition_states import IllegalPartitionTransition, PartitionState, check_transition

S = PartitionState

#: As `validPreviousStates` of Kafka 3.9.1 has them: target -> from.
VALID_PREVIOUS = {
    S.NEW: {S.NON_EXISTENT},
    S.ONLINE: {S.NEW, S.ONLINE, S.OFFLINE},
    S.OFFLINE: {S.NEW, S.ONLINE, S.OFFLINE},
    S.NON_EXISTENT: {S.OFFLINE},
}


@pytest.mark.parametrize(("now", "target"), list(itertools.product(S, S)))
def test_each_change(now: S, target: S) -> None:
    if now in VALID_PREVIOUS[target]:
        check_transition("t", 0, now, target)
    else:
        with pytest.raises(IllegalPartitionTransition, match=rf"t-0 .* moving to {target.value} .* is in {now.value}"):
            check_transition("t", 0, now, target)
