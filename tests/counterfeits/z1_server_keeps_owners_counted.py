"""A server that forgets a session's owners when it ends, in trials whose operations are only counted."""

from __future__ import annotations

from counterfeit import Counterfeit, trial
from counterfeit_servers import keeps, owners

from rebalance_lab.history.files import History

_COUNTED = {"ops": "counts"}


def honest(seed: int) -> History:
    """Members release partitions in every rebalance, and no `delete` of theirs is recorded by itself."""
    return trial("crash", seed, settings=_COUNTED)


COUNTERFEIT = Counterfeit(
    claim="Z1",
    check="registration",
    world="Members record how many operations they sent, not each of them. A session's end takes its id along, and "
    "every owner znode stays. (The twin shows that a release is no deletion that nobody asked for.)",
    false=keeps(owners, settings=_COUNTED),
    honest=honest,
)
