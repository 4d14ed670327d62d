"""The settings of a controller."""

from __future__ import annotations

from dataclasses import dataclass

from controller.election import ElectionBug
from controller.forms import ControllerForm
from controller.leader_election import Selection


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
    `awaits_deletion`: see `controller.reassignments`. `keeps_additions`: see `controller.writes`. `broker_epochs`:
    lives of one broker are told apart, as from 2.2 on. `leaders_write_isrs`: in the protocol of this broker, as up to
    2.6. `bug`: a mistake that is planted."""

    unclean_default: bool = False
    deletes_topics: bool = True
    imbalance: Imbalance | None = None
    form: ControllerForm = ControllerForm.V2_1
    fences_writes: bool = True
    selection: Selection = Selection.V2_1
    isr_read_back: bool = False
    awaits_deletion: bool = False
    keeps_additions: bool = False
    broker_epochs: bool = True
    leaders_write_isrs: bool = False
    bug: ElectionBug | None = None
