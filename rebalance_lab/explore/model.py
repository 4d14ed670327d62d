"""The partition as a whole: all states, and all steps from each.

A state is one number for each replica and one for the controller. Each number stands for a value that was met before,
and what a step makes of a value is computed once: there are millions of states, but few different replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations
from typing import Generic, NamedTuple, TypeVar

from rebalance_lab.broker.replication.fetch_state import FetchState
from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.explore.control import Control, ControlSteps, renamed_control, sent_again, without_old_orders
from rebalance_lab.explore.replica import AnswerKind, Isr, Order, Replica, ReplicaSteps, Role, renamed, shape

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a schedule may contain.

    - `brokers`: replicas of the partition.
    - `records`: that producers write, over all leaders.
    - `epochs`: leader epochs, with the first.
    - `crashes`: of brokers that keep their logs. `power_losses`: of brokers that lose any part of the end of them.
    - `late_fetches`: whether a fetch can arrive after its sender's role has changed.
    - `late_answers`: whether the answer to a follower is a step of its own. If not, it arrives at once or not at all.
      That gives the same logs: a follower does nothing while it waits, so an answer that it takes late has the same
      effect as if it had come at once, and until then it is as if it had been lost.
    """

    brokers: int = 3
    records: int = 3
    epochs: int = 3
    crashes: int = 0
    power_losses: int = 0
    late_fetches: bool = False
    late_answers: bool = False


class StepKind(Enum):
    """What happens in a step. See `story` for the meaning of each."""

    PRODUCE = "produce"
    REQUEST = "request"
    EXCHANGE = "exchange"
    LOST_ANSWER = "lost answer"
    LATE_FETCH = "late fetch"
    TAKE = "take"
    SHRINK = "shrink"
    EXPAND = "expand"
    ISR_ANSWER = "ISR answer"
    OBEY = "obey"
    MOVE = "move"
    SESSION_END = "session end"
    ELECT = "elect"
    CRASH = "crash"
    POWER_LOSS = "power loss"


class Step(NamedTuple):
    """`broker`: who acts, or whom the controller acts on. `other`: the broker that is asked. `number`: the leader epoch
    of an order."""

    kind: StepKind
    broker: int
    other: int = -1
    number: int = -1
    isr: Isr = ()


State = tuple[int, ...]
Change = tuple[Step, int, int]


class Values(Generic[T]):
    """Values and their numbers, in the order in which they were first met. `met` is called with each new one."""

    def __init__(self, met: Callable[[T], None] = lambda _: None) -> None:
        self.of: list[T] = []
        self._numbers: dict[T, int] = {}
        self._met = met

    def number(self, value: T) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.of)
            self.of.append(value)
            self._met(value)
        return found


class Partition:
    """All states of one partition. `replicas`, `controls`: what the numbers in a state stand for.

    At the beginning the first broker leads in epoch 0, all follow it and are in sync, and nothing is written.
    """

    def __init__(
        self,
        rules: ReplicationRules,
        bounds: Bounds,
        *,
        replica_steps: Callable[..., ReplicaSteps] = ReplicaSteps,
        control_steps: Callable[..., ControlSteps] = ControlSteps,
        forgets_if_missed: bool = False,
    ) -> None:
        self.bounds = bounds
        self._shapes: list[int] = []
        self._heard: list[int] = []
        self._known_shapes: Values[Hashable] = Values()
        self.replicas: Values[Replica] = Values(self._replica_met)
        self.controls: Values[Control] = Values()
        self._steps = replica_steps(
            rules, bounds.brokers, late_fetches=bounds.late_fetches, forgets_if_missed=forgets_if_missed
        )
        self._control = control_steps(bounds.brokers, bounds.epochs)
        self._alone: dict[tuple[int, int, int], list[Change]] = {}
        self._asked: dict[tuple[int, int, int, int], list[tuple[Step, int, int]]] = {}
        self._ordered: dict[int, list[tuple[Step, int]]] = {}
        self._exposed: dict[tuple[int, int], int] = {}
        self._pruned: dict[tuple[int, int], int] = {}
        self._brokers = range(bounds.brokers)
        self._pairs = list(permutations(self._brokers, 2))
        self._orderings: dict[tuple[int, ...], list[_Symmetry]] = {}
        self._symmetries = [
            _Symmetry(names, self.replicas, self.controls) for names in permutations(range(bounds.brokers))
        ]

    def _replica_met(self, replica: Replica) -> None:
        self._shapes.append(self._known_shapes.number(shape(replica)))
        self._heard.append(replica.leader_epoch)

    @property
    def start(self) -> State:
        all_of_them = tuple(self._brokers)
        blank = Replica((), (), 0, Role.IDLE, -1)
        order = Order(0, 0, all_of_them)
        replicas = []
        for me in all_of_them:
            replica = self._steps.obeyed(me, blank, order)
            assert replica is not None
            replicas.append(self.replicas.number(replica._replace(late=None)))
        bounds = self.bounds
        control = Control(0, 0, all_of_them, (), (), bounds.records, bounds.crashes, bounds.power_losses)
        return (*replicas, self.controls.number(control))

    def values(self, state: State) -> tuple[list[Replica], Control]:
        """What the numbers of a state stand for."""
        return [self.replicas.of[each] for each in state[:-1]], self.controls.of[state[-1]]

    def canonical(self, state: State) -> State:
        """The same state with names of brokers that do not depend on who does what."""
        key = tuple([self._shapes[each] for each in state[:-1]])
        ordering = self._orderings.get(key)
        if ordering is None:
            wanted = sorted(key)
            ordering = self._orderings[key] = [each for each in self._symmetries if each.sorts(key, wanted)]
        if len(ordering) == 1:
            return ordering[0].of(state)
        return min([each.of(state) for each in ordering])

    # -- steps ------------------------------------------------------------------------------

    def steps(self, state: State) -> list[tuple[Step, State]]:
        """All steps from a state, and where they lead."""
        control = state[-1]
        found: list[tuple[Step, State]] = []
        for me in self._brokers:
            key = (control, me, state[me])
            alone = self._alone.get(key)
            if alone is None:
                alone = self._alone[key] = list(self._alone_of(*key))
            for step, after, control_after in alone:
                changed = (*state[:me], after, *state[me + 1 : -1])
                found.append((step, (*changed, self._pruned_control(changed, control_after))))
        for leader, follower in self._pairs:
            pair = (leader, state[leader], follower, state[follower])
            asked = self._asked.get(pair)
            if asked is None:
                asked = self._asked[pair] = list(self._asked_of(*pair))
            for step, leader_after, follower_after in asked:
                both = list(state)
                both[leader], both[follower] = leader_after, follower_after
                both[-1] = self._exposed_control(control, leader_after)
                found.append((step, tuple(both)))
        ordered = self._ordered.get(control)
        if ordered is None:
            ordered = self._ordered[control] = list(self._ordered_of(control))
        rest = state[:-1]
        found.extend((step, (*rest, control_after)) for step, control_after in ordered)
        return found

    def _exposed_control(self, control: int, replica: int) -> int:
        """Consumers can read what a leader has committed."""
        key = (control, replica)
        found = self._exposed.get(key)
        if found is None:
            known, exposed = self.controls.of[control], self.replicas.of[replica].exposed
            found = control
            if len(exposed) > len(known.committed) and exposed[: len(known.committed)] == known.committed:
                found = self.controls.number(known._replace(committed=exposed))
            self._exposed[key] = found
        return found

    def _pruned_control(self, replicas: State, control: int) -> int:
        """Nobody obeys an order that all have obeyed."""
        key = (control, min([self._heard[each] for each in replicas]))
        found = self._pruned.get(key)
        if found is None:
            found = self._pruned[key] = self.controls.number(without_old_orders(self.controls.of[control], key[1]))
        return found

    # -- one replica ------------------------------------------------------------------------

    def _alone_of(self, control_number: int, me: int, replica_number: int) -> Iterator[Change]:
        control, replica = self.controls.of[control_number], self.replicas.of[replica_number]
        for step, after, control_after in (
            *self._orders_of(control, me, replica),
            *self._answers_of(control, me, replica),
            *self._leader_of(control, me, replica),
            *self._crashes_of(control, me, replica),
        ):
            number = self.replicas.number(after)
            yield step, number, self._exposed_control(self.controls.number(control_after), number)

    def _orders_of(self, control: Control, me: int, replica: Replica) -> Iterator[tuple[Step, Replica, Control]]:
        for order in control.orders:
            obeyed = self._steps.obeyed(me, replica, order)
            if obeyed is not None:
                yield Step(StepKind.OBEY, me, order.leader, order.leader_epoch), obeyed, control

    def _answers_of(self, control: Control, me: int, replica: Replica) -> Iterator[tuple[Step, Replica, Control]]:
        if replica.answer is not None:
            yield Step(StepKind.TAKE, me, replica.leader), self._steps.took(replica), control
        if replica.led is not None and replica.led.written:
            yield Step(StepKind.ISR_ANSWER, me), self._steps.isr_answered(me, replica), control

    def _leader_of(self, control: Control, me: int, replica: Replica) -> Iterator[tuple[Step, Replica, Control]]:
        if replica.led is None:
            return
        if control.records:
            fewer = control._replace(records=control.records - 1)
            yield Step(StepKind.PRODUCE, me), self._steps.appended(me, replica), fewer
        asked = [(StepKind.SHRINK, isr) for isr in self._steps.shrunk(me, replica)]
        if replica.led.proposed is not None and not replica.led.written:
            asked.append((StepKind.EXPAND, replica.led.proposed))
        for kind, isr in asked:
            if self._control.writes(control, replica, isr):
                yield Step(kind, me, isr=isr), self._steps.isr_written(replica, isr), control._replace(isr=isr)

    def _crashes_of(self, control: Control, me: int, replica: Replica) -> Iterator[tuple[Step, Replica, Control]]:
        in_sync = me in control.isr
        after_epoch = control.leader_epoch if in_sync else control.leader_epoch - 1
        heard = control if in_sync else sent_again(control)
        for kind, left, ends in (
            (StepKind.CRASH, control.crashes, [replica.end]),
            (StepKind.POWER_LOSS, control.power_losses, range(replica.end)),
        ):
            if not left:
                continue
            fewer = heard._replace(
                crashes=heard.crashes - (kind is StepKind.CRASH),
                power_losses=heard.power_losses - (kind is StepKind.POWER_LOSS),
            )
            for end in ends:
                for high_watermark in range(min(replica.high_watermark, end) + 1):
                    after = self._steps.restarted(
                        replica, high_watermark=high_watermark, end=end, after_epoch=after_epoch
                    )
                    yield Step(kind, me, number=end), after, fewer

    # -- two replicas -----------------------------------------------------------------------

    def _asked_of(self, me: int, leader_number: int, you: int, follower_number: int) -> Iterator[Change]:
        leader, follower = self.replicas.of[leader_number], self.replicas.of[follower_number]
        if leader.role is not Role.LEADER:
            return
        if follower.role is Role.FOLLOWER and follower.leader == me and follower.fetching is not FetchState.FAILED:
            for kind, *found in self._requests(me, leader, you, follower):
                if tuple(found) != (leader, follower):
                    yield Step(kind, you, me), *self._numbers(found)
        if follower.late is not None and follower.late.leader == me:
            late = self._steps.fetched(me, leader, you, follower.late)
            if late is not None:
                yield Step(StepKind.LATE_FETCH, you, me), *self._numbers((late[0], follower._replace(late=None)))

    def _requests(
        self, me: int, leader: Replica, you: int, follower: Replica
    ) -> Iterator[tuple[StepKind, Replica, Replica]]:
        """A follower's request arrives: what becomes of both. An answer that changes nothing is left out."""
        waits_for_end = follower.answer is not None and follower.answer.kind is AnswerKind.OUT_OF_RANGE
        if follower.answer is not None and not waits_for_end:
            return
        found = self._steps.answered(me, leader, you, follower)
        if found is None:
            return
        after, answer = found
        idle, waiting = follower._replace(answer=None), follower._replace(answer=answer)
        taken = waiting if answer.kind is AnswerKind.OUT_OF_RANGE else self._steps.took(waiting)
        yield StepKind.LOST_ANSWER, after, idle
        if taken == idle:
            return
        if self.bounds.late_answers:
            yield StepKind.REQUEST, after, waiting
        else:
            yield StepKind.EXCHANGE, after, taken

    def _numbers(self, pair: Iterable[Replica]) -> tuple[int, int]:
        first, second = pair
        return self.replicas.number(first), self.replicas.number(second)

    # -- the controller ---------------------------------------------------------------------

    def _ordered_of(self, number: int) -> Iterator[tuple[Step, int]]:
        control = self.controls.of[number]
        for kind, found in (
            (StepKind.MOVE, self._control.moved(control)),
            (StepKind.SESSION_END, self._control.ended(control)),
            (StepKind.ELECT, self._control.elected(control)),
        ):
            for broker, after in found:
                step = Step(kind, broker, after.leader, after.leader_epoch, after.isr)
                yield step, self.controls.number(after)


class _Symmetry:
    """One way to rename the brokers of a state: `names[old]` is the new name."""

    def __init__(self, names: Sequence[int], replicas: Values[Replica], controls: Values[Control]) -> None:
        self._names = names
        self._old = tuple(names.index(new) for new in range(len(names)))
        self._replicas = replicas
        self._controls = controls
        self._replica_numbers: dict[int, int] = {}
        self._control_numbers: dict[int, int] = {}

    def sorts(self, shapes: Sequence[int], wanted: Sequence[int]) -> bool:
        """Whether the shapes of replicas have this order afterwards."""
        return [shapes[old] for old in self._old] == wanted

    def of(self, state: State) -> State:
        known = self._replica_numbers
        try:
            control = self._control_numbers[state[-1]]
            return (*[known[state[old]] for old in self._old], control)
        except KeyError:
            for number in state[:-1]:
                if number not in known:
                    known[number] = self._replicas.number(renamed(self._replicas.of[number], self._names))
            after = renamed_control(self._controls.of[state[-1]], self._names)
            self._control_numbers[state[-1]] = self._controls.number(after)
            return self.of(state)
