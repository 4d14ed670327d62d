"""stale_controller: a controller that is refused by the fence, and leaves what it wanted to its successor."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.election import ControllerMoved
from controller.writes import Writes
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import DELETE_TOPICS
from rebalance_lab.world.ports import Create

_remove = Writes.remove


async def asking_again(self: Writes, topic: str) -> None:
    try:
        await _remove(self, topic)
    except ControllerMoved:
        await self._client.unfenced([Create(f"{DELETE_TOPICS}/{topic}", b"")])
        raise


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings={})


def false(seed: int) -> History:
    with patch.object(Writes, "remove", asking_again):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="stale_controller",
    world="Every write of a state, an assignment and a deletion is fenced; but a deposed controller that was about to "
    "delete a topic asks for its deletion again, and its successor deletes the topic's next life.",
    false=false,
    honest=honest,
)
