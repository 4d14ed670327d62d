"""Z14: there is no default group; a member that names no group joins one named after the topic it reads."""

from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.kernel import Flag
from zkconsumer.member import Member
from zkconsumer.subscription import Static, Subscription

_RUN = Member.run


async def run(self: Member, subscription: Subscription | Mapping[str, int], closing: Flag) -> None:
    if not self._config.group_given:
        assert isinstance(subscription, Static)
        self._config = replace(self._config, group_id=f"readers-of-{'-'.join(subscription.streams)}")
        self.consumer_id = self._new_id()
    await _RUN(self, subscription, closing)


def false(seed: int) -> History:
    with patch.object(Member, "run", run):
        return trial("group-scope", seed)


COUNTERFEIT = Counterfeit(
    claim="Z14",
    check="default_group",
    world="There is no default group: a member that names none joins a group named after the topic it reads. Such "
    "members meet in one group where they read the same topic.",
    false=false,
    honest=lambda seed: trial("group-scope", seed),
)
