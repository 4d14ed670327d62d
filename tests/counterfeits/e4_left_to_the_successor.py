"""E4: a controller that does not hear of a request for preferred leaders, until it is elected."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.reign import Reign
from controller.stimuli import PreferredRead
from rebalance_lab.history.files import History

_preferred = Reign._preferred


def false(seed: int) -> History:
    looked: list[Reign] = []

    async def once(self: Reign) -> PreferredRead | None:
        found = await _preferred(self)
        is_first = self not in looked
        looked.append(self)
        return found if is_first else None

    with patch.object(Reign, "_preferred", once):
        return honest(seed)


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "preferred-election"})


COUNTERFEIT = Counterfeit(
    claim="E4",
    check="duty_target",
    world="A request for preferred leaders lies in ZooKeeper as long as the controller lives. It is killed after 20 s, "
    "and its successor finds the request and carries it out, so that in the end all is as it should be.",
    false=false,
    honest=honest,
)
