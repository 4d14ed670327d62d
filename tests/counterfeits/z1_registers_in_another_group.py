"""Z1: a member registers in another group than the one in which it owns partitions."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

import zkconsumer.connector
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import member_path


def elsewhere(group: str, member: str) -> str:
    return member_path(f"{group}x" if "-m3-" in member else group, member)


def false(seed: int) -> History:
    with patch.object(zkconsumer.connector, "member_path", elsewhere):
        return trial("crash", seed)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="One member registers below the ids of another group. Its own group, in which it owns, has no id of it.",
    false=false,
    honest=lambda seed: trial("crash", seed),
)
