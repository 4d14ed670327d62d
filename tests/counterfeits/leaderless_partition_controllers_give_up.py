"""leaderless_partition: forty controllers in a row fail while they elect, and leave it to the next."""

from collections.abc import Collection, Iterable
from unittest.mock import patch

from counterfeit import Counterfeit, trial

import controller.controller
from controller.elections import Elections, Strategy
from controller.stimuli import Instruction
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.history.files import History

_elect = Elections.elect
FAILURES = 40


def honest(seed: int) -> History:
    return trial("leader-start", seed, settings={})


def false(seed: int) -> History:
    failed = 0

    def elect(
        self: Elections,
        partitions: Iterable[TopicPartition] | None = None,
        strategy: Strategy = Strategy.OFFLINE,
        *,
        unclean: Collection[str] | None = None,
    ) -> list[Instruction]:
        nonlocal failed
        if partitions is None and failed < FAILURES and any(each in self._cluster.stored for each in self.waiting()):
            failed += 1
            raise RuntimeError("it fails")
        return _elect(self, partitions, strategy, unclean=unclean)

    with (
        patch.object(Elections, "elect", elect),
        patch.object(controller.controller, "FAILURE_PAUSE_MS", 500),
    ):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="leaderless_partition",
    world="A controller that fails gives up, and the next one is there at once: no controller reigns for long without "
    "electing, and there is always one. But each of them fails, and for 20 s nobody is elected.",
    false=false,
    honest=honest,
)
