"""Z7c: a member reads the list of members once more in each attempt."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial
from counterfeit_forging import live

from rebalance_lab.history.files import History
from zkconsumer.group_view import GroupView

_MEMBERS = GroupView._members


async def members(self: GroupView) -> tuple[tuple[str, ...], int]:
    await _MEMBERS(self)
    return await _MEMBERS(self)


def herd(seed: int) -> History:
    return live(trial("herd", seed, rules="shipped", settings={"members": "4"}))


def false(seed: int) -> History:
    with patch.object(GroupView, "_members", members):
        return herd(seed)


COUNTERFEIT = Counterfeit(
    claim="Z7c",
    check="herd_cost",
    world="Each member makes sure of the list of members by reading it twice: a read more in each attempt of some "
    "dozen, in a live history in which some attempts also fail on conflicts.",
    false=false,
    honest=herd,
)
