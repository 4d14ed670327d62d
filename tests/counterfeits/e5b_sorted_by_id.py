"""E5b: a controller of 0.8.2 that takes the ISR for a set."""

from collections.abc import Collection, Sequence
from typing import Any
from unittest.mock import patch

from counterfeit import Counterfeit, trial
from msgspec.structs import replace

import controller.elections
from controller.leader_election import Election, LeaderAndIsr, controlled_shutdown
from rebalance_lab.history.files import History

SHUTDOWN = {"leaves": "shuts-down", "selection": "0.8.2"}


def by_id(
    assignment: Sequence[int], current: LeaderAndIsr, live: Collection[int], shutting_down: Collection[int], **more: Any
) -> Election:
    by_set = replace(current, isr=tuple(sorted(current.isr)))
    chosen = controlled_shutdown(assignment, by_set, live, shutting_down, **more)
    stays = tuple(each for each in current.isr if each not in shutting_down)
    return replace(chosen, leader_and_isr=replace(chosen.leader_and_isr, isr=stays))


def honest(seed: int) -> History:
    return trial("isr-election", seed, settings=SHUTDOWN)


def false(seed: int) -> History:
    with patch.object(controller.elections, "controlled_shutdown", by_id):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E5b",
    check="isr_order",
    world="A broker shuts down, and the controller moves what it leads to the first in sync by id; the state znode "
    "lists the ISR in the order in which replicas joined, so whoever looks while nothing has failed sees one order.",
    false=false,
    honest=honest,
)
