"""E4: a controller that deletes a topic and leaves its settings."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.writes import Writes
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import TOPIC_CONFIGS

_delete = Writes.delete


async def but_settings(self: Writes, path: str) -> None:
    if not path.startswith(f"{TOPIC_CONFIGS}/"):
        await _delete(self, path)


def honest(seed: int) -> History:
    return trial("duties", seed, settings={"duty": "delete-topic", "kill_at": "0"})


def false(seed: int) -> History:
    with patch.object(Writes, "delete", but_settings):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E4",
    check="duty_target",
    world="The topic is gone from ZooKeeper, from all metadata and from all disks, and so is the request to delete it; "
    "but the next topic of that name finds its settings.",
    false=false,
    honest=honest,
)
