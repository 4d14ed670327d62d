"""The settings of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.forms import ControllerForm
from controller.leader_election import Selection


class ControllerBug(StrEnum):
    """A mistake of a controller that can be planted.

    - REPEATS_EPOCH: the election writes the controller epoch that it has found, unless it is the first.
    - WATCHES_ONCE: a broker that was told once that the controller is gone does not watch again.
    - WRITES_LAST_EPOCH: the controller writes states in the epoch of the one before, unless it is the first.
    - SHRINKS_FIRST: dead replicas leave the ISR of a topic's first partition only.
    - FORGETS_DELETIONS: a new controller does not go on with the deletions that it finds.
    - FORGETS_NEW: a new controller elects nobody for partitions that have never had a leader.
    - ELECTS_ANEW: for each broker that comes leaders are elected for all partitions, those with a live one, too.
    - DEPOSES: a controller that gives up deletes `/controller` without asking whose it is, as up to 2.0.
    """

    REPEATS_EPOCH = "repeats-epoch"
    WATCHES_ONCE = "watches-once"
    WRITES_LAST_EPOCH = "writes-last-epoch"
    SHRINKS_FIRST = "shrinks-first"
    FORGETS_DELETIONS = "forgets-deletions"
    FORGETS_NEW = "forgets-new"
    ELECTS_ANEW = "elects-anew"
    DEPOSES = "deposes"


@dataclass(frozen=True, slots=True)
class Imbalance:
    """How much of what a broker should lead may be led by others, and how often a controller looks
    (leader.imbalance.per.broker.percentage, leader.imbalance.check.interval.seconds)."""

    percentage: int = 10
    interval_ms: int = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """`unclean_default`: unclean.leader.election.enable, of topics that do not override it. `deletes_topics`:
    delete.topic.enable. `imbalance`: when preferred leaders are elected; None: only when they are asked for.

    `form`: how the controller is elected and writes. `fences_writes`, if False: its writes do not check the epoch, in
    no form. `selection`: the release whose rules choose leaders. `isr_read_back`: see `controller.isr_requests`.
    `election_read_back`, if False: a broker of form 2.1 whose election is refused takes another one for the controller,
    without asking whether the refused transaction is its own, sent again (KAFKA-13407).
    `awaits_deletion`, `refuses_dead_targets`: see `controller.reassignments`.
    `keeps_additions`: see `controller.writes`. `keeps_requests`: a request to reassign that is written over another is
    taken up, and never overwritten, in any form. `elects_batch_again`: see `controller.elections`.
    `orders_before_metadata`: a new controller tells brokers of leaders before it tells them who is live, as up to
    0.10.1 (KAFKA-4443). `resigns_under_lock`, `lists_early`: see `controller.reign`. `broker_epochs`: lives of one
    broker are told apart, as from 2.2 on. `leaders_write_isrs`: in the protocol of this broker, as up to 2.6.
    `features_enabled`: see `controller.features`; None: the release knows no features, as up to 2.6. `bug`: a mistake
    that is planted."""

    unclean_default: bool = False
    deletes_topics: bool = True
    imbalance: Imbalance | None = None
    form: ControllerForm = ControllerForm.V2_1
    fences_writes: bool = True
    selection: Selection = Selection.V2_1
    isr_read_back: bool = False
    election_read_back: bool = True
    awaits_deletion: bool = False
    refuses_dead_targets: bool = False
    keeps_additions: bool = False
    keeps_requests: bool = False
    elects_batch_again: bool = False
    orders_before_metadata: bool = False
    resigns_under_lock: bool = False
    lists_early: bool = False
    broker_epochs: bool = True
    leaders_write_isrs: bool = False
    features_enabled: bool | None = True
    bug: ControllerBug | None = None
