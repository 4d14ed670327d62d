"""The controller in the model: what ZooKeeper holds of the partition, and what a controller makes of it.

The rules are the controller's own (`controller.leader_election`). A broker's session may end at any time, whether the
broker has died or is slow, and it registers again at once. The order of the assignment, in which the rules look for a
leader, can be any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from controller.cluster import Stored
from controller.isr_requests import refusal
from controller.leader_election import Election, LeaderAndIsr, NoLeader, offline, preferred, without_replicas
from controller.stimuli import IsrWanted
from rebalance_lab.explore.replica import Isr, Order, renamed_isr
from rebalance_lab.wire.cluster import NO_LEADER


class Control(NamedTuple):
    """- `leader`, `leader_epoch`, `isr`: the state znode.
    - `orders`: the LeaderAndIsr requests that a broker may still obey, oldest first.
    - `committed`: the longest log that consumers could read anywhere so far.
    - `records`, `crashes`, `power_losses`: how many more there can be.
    """

    leader: int
    leader_epoch: int
    isr: Isr
    orders: tuple[Order, ...]
    committed: tuple[int, ...]
    records: int
    crashes: int
    power_losses: int

    @property
    def state(self) -> LeaderAndIsr:
        return LeaderAndIsr(self.leader, self.leader_epoch, self.isr)


class ControlSteps:
    """What a controller does. `epochs`: how many leader epochs there can be, from 0 on."""

    unclean_allowed = False

    def __init__(self, brokers: int, epochs: int) -> None:
        self._brokers = tuple(range(brokers))
        self._epochs = epochs

    def moved(self, control: Control) -> Iterator[tuple[int, Control]]:
        """The leadership is given to an in-sync replica that is the first of the assignment now: to whom, and what
        follows."""
        for first in self._brokers:
            if first == control.leader:
                continue
            assignment = (first, *(each for each in self._brokers if each != first))
            try:
                election = preferred(assignment, control.state, self._brokers)
            except NoLeader:
                continue
            yield from ((first, each) for each in self._ordered(control, election.leader_and_isr))

    def ended(self, control: Control) -> Iterator[tuple[int, Control]]:
        """The session of a broker has ended: whose, and what follows."""
        for gone in self._brokers:
            after = without_replicas(control.state, (gone,))
            if gone == control.leader:
                live = tuple(each for each in self._brokers if each != gone)
                elected = {each.leader_and_isr for each in self._elections(control, live)}
                for each in sorted(elected, key=lambda state: state.leader) or ([after] if after else []):
                    yield from ((gone, found) for found in self._ordered(control, each))
            elif after is not None:
                yield from ((gone, found) for found in self._ordered(control, after))

    def elected(self, control: Control) -> Iterator[tuple[int, Control]]:
        """A partition without a leader gets one: whom, and what follows."""
        if control.leader != NO_LEADER:
            return
        found = {each.leader_and_isr for each in self._elections(control, self._brokers)}
        for state in sorted(found, key=lambda each: each.leader):
            yield from ((state.leader, each) for each in self._ordered(control, state))

    def writes(self, control: Control, leader_epoch: int, isr: Isr) -> bool:
        """Whether the controller writes the ISR that the leader of an epoch asks for. The versions of the state znode
        are not modelled: only the leader of the current epoch writes in it, and one change at a time."""
        wanted = IsrWanted(leader_epoch, isr, partition_epoch=0)
        return refusal(wanted, Stored(control.state, controller_epoch=0, version=0), self._brokers) is None

    def _elections(self, control: Control, live: Sequence[int]) -> Iterator[Election]:
        for assignment in permutations(self._brokers):
            try:
                yield offline(assignment, control.state, live, unclean_allowed=self.unclean_allowed)
            except NoLeader:
                continue

    def _ordered(self, control: Control, state: LeaderAndIsr) -> Iterator[Control]:
        """A state is written and sent to all, if it is within the bounds."""
        if state.leader_epoch >= self._epochs:
            return
        isr = tuple(sorted(state.isr))
        written = control._replace(leader=state.leader, leader_epoch=state.leader_epoch, isr=isr)
        yield written if state.leader == NO_LEADER else sent_again(written)


def sent_again(control: Control) -> Control:
    """The current state is sent to all, if it is not on its way already."""
    order = Order(control.leader_epoch, control.leader, control.isr)
    if control.leader == NO_LEADER or (control.orders and control.orders[-1].leader_epoch == order.leader_epoch):
        return control
    return control._replace(orders=(*control.orders, order))


def without_old_orders(control: Control, obeyed: int) -> Control:
    """All brokers have obeyed orders up to epoch `obeyed`: nobody obeys those any more."""
    if not control.orders or control.orders[0].leader_epoch > obeyed:
        return control
    return control._replace(orders=tuple(each for each in control.orders if each.leader_epoch > obeyed))


def renamed_control(control: Control, names: Sequence[int]) -> Control:
    """The same with other names of brokers: `names[old]` is the new one."""
    leader = control.leader if control.leader < 0 else names[control.leader]
    orders = tuple(
        Order(each.leader_epoch, each.leader if each.leader < 0 else names[each.leader], renamed_isr(each.isr, names))
        for each in control.orders
    )
    return control._replace(leader=leader, isr=renamed_isr(control.isr, names), orders=orders)
