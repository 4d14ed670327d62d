"""The partition as a whole: all states, and all steps from each.

A state is one number for each replica and one for the controller. Each number stands for a value that was met before,
and what a step makes of a value is computed once: there are millions of states, but few different replicas.
`expansion` takes the same steps from many states at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache, partial
from itertools import permutations
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, cast

from rebalance_lab.broker.replication.rules import ReplicationRules
from rebalance_lab.explore.control import Control, ControlSteps, renamed_control, sent_again, without_old_orders
from rebalance_lab.explore.replica import (
    Answer,
    AnswerKind,
    Isr,
    Order,
    Question,
    Replica,
    ReplicaSteps,
    Role,
    renamed,
    shape,
)

T = TypeVar("T", bound=Hashable)
P = ParamSpec("P")
R = TypeVar("R")


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


#: The number of the effect of a step that does not concern the controller.
NO_EFFECT = 0

State = tuple[int, ...]
Change = tuple[Step, int, int]


class _remembered(Generic[P, R]):  # noqa: N801
    """A method that computes each of its results once."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, _: type | None = None) -> Callable[P, R]:
        found = cast("Callable[P, R]", cache(partial(self._method, instance)))
        vars(instance)[self._name] = found  # from now on, this is not asked
        return found


class Unmet(Exception):
    """A value has no number, and must not get one now."""


class Values(Generic[T]):
    """Values and their numbers, in the order in which they were first met. `met` is called with each new one."""

    def __init__(self, met: Callable[[T], None] = lambda _: None) -> None:
        self.of: list[T] = []
        self.closed = False
        self._numbers: dict[T, int] = {}
        self._met = met

    def number(self, value: T) -> int:
        """Raises Unmet for a new value while `closed`."""
        found = self._numbers.get(value)
        if found is None:
            if self.closed:
                raise Unmet
            found = self._numbers[value] = len(self.of)
            self.of.append(value)
            self._met(value)
        return found


class Partition:
    """All states of one partition. `replicas`, `controls`: what the numbers in a state stand for.

    - Of each replica, `shapes`: the number of its shape. `heard`: the leader epoch that it knows. `leads`: whether it
      does. `addressees`: the brokers for which it has a request, as bits.
    - Of each control, `views`: the number of what the steps of one broker depend on.

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
        self.shapes: list[int] = []
        self.heard: list[int] = []
        self.leads: list[bool] = []
        self.addressees: list[int] = []
        self.views: list[int] = []
        self._known_shapes: Values[Hashable] = Values()
        self.replicas: Values[Replica] = Values(self._replica_met)
        self.controls: Values[Control] = Values(self._control_met)
        self._known_views: Values[Control] = Values()
        self._effects: Values[Step | None] = Values()
        self._effects.number(None)
        self._steps = replica_steps(
            rules, bounds.brokers, late_fetches=bounds.late_fetches, forgets_if_missed=forgets_if_missed
        )
        self._control = control_steps(bounds.brokers, bounds.epochs)
        self.brokers = range(bounds.brokers)
        self.pairs = list(permutations(self.brokers, 2))
        self.symmetries = [Symmetry(names, self.replicas, self.controls) for names in permutations(self.brokers)]

    def _replica_met(self, replica: Replica) -> None:
        self.shapes.append(self._known_shapes.number(shape(replica)))
        self.heard.append(replica.leader_epoch)
        self.leads.append(replica.role is Role.LEADER)
        asked = {replica.leader} if self._steps.question(replica) is not None else set()
        late = {replica.late.leader} if replica.late is not None else set()
        self.addressees.append(sum(1 << each for each in asked | late))

    def _control_met(self, control: Control) -> None:
        left = (min(each, 1) for each in (control.records, control.crashes, control.power_losses))
        self.views.append(self._known_views.number(Control(*control[:4], (), *left)))

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Meanwhile nothing gets a number: what meets a new value raises Unmet."""
        self.replicas.closed = self.controls.closed = True
        try:
            yield
        finally:
            self.replicas.closed = self.controls.closed = False

    @property
    def start(self) -> State:
        all_of_them = tuple(self.brokers)
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
        """The same state with names of brokers that do not depend on who does what: the shapes of replicas are sorted.
        Of several such states, the least."""
        shapes = tuple([self.shapes[each] for each in state[:-1]])
        return min([each.of(state) for each in self._sorting(shapes)])

    @_remembered
    def _sorting(self, shapes: tuple[int, ...]) -> list[Symmetry]:
        wanted = sorted(shapes)
        return [each for each in self.symmetries if [shapes[old] for old in each.old] == wanted]

    # -- steps ------------------------------------------------------------------------------

    def steps(self, state: State) -> list[tuple[Step, State]]:
        """All steps from a state, and where they lead."""
        control = state[-1]
        found: list[tuple[Step, State]] = []
        for me in self.brokers:
            alone = [
                (step, after, self.exposed(self.affected(control, effect), after))
                for step, after, effect in self.alone(self.views[control], me, state[me])
            ]
            for step, after, control_after in alone:
                changed = (*state[:me], after, *state[me + 1 : -1])
                heard = min([self.heard[each] for each in changed])
                found.append((step, (*changed, self.pruned(control_after, heard))))
        for leader, follower in self.pairs:
            for step, leader_after, follower_after in self.asked(leader, state[leader], follower, state[follower]):
                both = list(state)
                both[leader], both[follower] = leader_after, follower_after
                both[-1] = self.exposed(control, leader_after)
                found.append((step, tuple(both)))
        found.extend((step, (*state[:-1], control_after)) for step, control_after in self.ordered(control))
        return found

    @_remembered
    def exposed(self, control: int, replica: int) -> int:
        """Consumers can read what a leader has committed."""
        known, exposed = self.controls.of[control], self.replicas.of[replica].exposed
        if len(exposed) > len(known.committed) and exposed[: len(known.committed)] == known.committed:
            return self.controls.number(known._replace(committed=exposed))
        return control

    @_remembered
    def pruned(self, control: int, heard: int) -> int:
        """Nobody obeys an order that all have obeyed. `heard`: the oldest leader epoch that a broker knows."""
        return self.controls.number(without_old_orders(self.controls.of[control], heard))

    # -- one replica ------------------------------------------------------------------------

    def alone(self, view: int, me: int, replica: int) -> list[Change]:
        """The steps of one broker, each with the numbers of its replica afterwards and of the effect."""
        return list(self._alone_of(view, me, replica))

    def _alone_of(self, view: int, me: int, replica: int) -> Iterator[Change]:
        control = self._known_views.of[view]
        for order in control.orders:
            obeyed = self._obeyed(me, replica, order)
            if obeyed is not None:
                yield *obeyed, NO_EFFECT
        for step, after in self._answers_taken(me, replica):
            yield step, after, NO_EFFECT
        if control.records and (appended := self._appended(me, replica)) is not None:
            yield *appended, self._effects.number(appended[0])
        for step, leader_epoch in self._isr_changes(me, replica):
            if self._control.writes(control, leader_epoch, step.isr):
                yield step, self._told_isr(replica, step.isr), self._effects.number(step)
        if control.crashes or control.power_losses:
            yield from self._crashes_of(control, me, replica)

    @_remembered
    def affected(self, number: int, effect: int) -> int:
        """What the step of a broker makes of the controller."""
        step, control = self._effects.of[effect], self.controls.of[number]
        if step is None:
            return number
        if step.kind is StepKind.PRODUCE:
            return self.controls.number(control._replace(records=control.records - 1))
        if step.kind in (StepKind.SHRINK, StepKind.EXPAND):
            return self.controls.number(control._replace(isr=step.isr))
        heard = control if step.broker in control.isr else sent_again(control)
        crashed = step.kind is StepKind.CRASH
        fewer = heard._replace(crashes=heard.crashes - crashed, power_losses=heard.power_losses - (not crashed))
        return self.controls.number(fewer)

    @_remembered
    def _obeyed(self, me: int, replica: int, order: Order) -> tuple[Step, int] | None:
        obeyed = self._steps.obeyed(me, self.replicas.of[replica], order)
        if obeyed is None:
            return None
        return Step(StepKind.OBEY, me, order.leader, order.leader_epoch), self.replicas.number(obeyed)

    @_remembered
    def _answers_taken(self, me: int, number: int) -> list[tuple[Step, int]]:
        """A follower takes an answer of its leader, or a leader one of the controller."""
        replica, found = self.replicas.of[number], []
        if replica.answer is not None:
            found.append((Step(StepKind.TAKE, me, replica.leader), self._steps.took(replica)))
        if replica.led is not None and replica.led.written:
            found.append((Step(StepKind.ISR_ANSWER, me), self._steps.isr_answered(me, replica)))
        return [(step, self.replicas.number(after)) for step, after in found]

    @_remembered
    def _appended(self, me: int, number: int) -> tuple[Step, int] | None:
        replica = self.replicas.of[number]
        if replica.led is None:
            return None
        return Step(StepKind.PRODUCE, me), self.replicas.number(self._steps.appended(me, replica))

    @_remembered
    def _isr_changes(self, me: int, number: int) -> list[tuple[Step, int]]:
        """What a leader asks the controller for, and in which epoch."""
        replica = self.replicas.of[number]
        if replica.led is None:
            return []
        asked = [(StepKind.SHRINK, isr) for isr in self._steps.shrunk(me, replica)]
        if replica.led.proposed is not None and not replica.led.written:
            asked.append((StepKind.EXPAND, replica.led.proposed))
        return [(Step(kind, me, isr=isr), replica.leader_epoch) for kind, isr in asked]

    @_remembered
    def _told_isr(self, replica: int, isr: Isr) -> int:
        return self.replicas.number(self._steps.isr_written(self.replicas.of[replica], isr))

    def _crashes_of(self, control: Control, me: int, replica: int) -> Iterator[Change]:
        end = self.replicas.of[replica].end
        after_epoch = control.leader_epoch if me in control.isr else control.leader_epoch - 1
        for kind, left, ends in (
            (StepKind.CRASH, control.crashes, [end]),
            (StepKind.POWER_LOSS, control.power_losses, range(end)),
        ):
            if left:
                effect = self._effects.number(Step(kind, me))
                for kept in ends:
                    for after in self._restarted(replica, kept, after_epoch):
                        yield Step(kind, me, number=kept), after, effect

    @_remembered
    def _restarted(self, number: int, end: int, after_epoch: int) -> list[int]:
        """A replica that starts again: one for each high watermark that its checkpoint can have."""
        replica = self.replicas.of[number]
        return [
            self.replicas.number(
                self._steps.restarted(replica, high_watermark=high_watermark, end=end, after_epoch=after_epoch)
            )
            for high_watermark in range(min(replica.high_watermark, end) + 1)
        ]

    # -- two replicas -----------------------------------------------------------------------

    def asked(self, me: int, leader: int, you: int, follower: int) -> list[Change]:
        """The steps in which a request of broker `you` reaches broker `me`, each with the numbers of the replicas of
        `me` and of `you` afterwards. An answer that changes nothing is left out."""
        found: list[Change] = []
        if not (self.leads[leader] and self.addressees[follower] >> me & 1):
            return found
        asking = self.replicas.of[follower]
        if asking.leader == me and (question := self._question(follower)) is not None:
            answered = self._answered(me, leader, you, question)
            if answered is not None:
                after, answer = answered
                idle, taken = self._taken(follower, answer)
                if (after, idle) != (leader, follower):
                    found.append((Step(StepKind.LOST_ANSWER, you, me), after, idle))
                if taken != idle and (after, taken) != (leader, follower):
                    kind = StepKind.REQUEST if self.bounds.late_answers else StepKind.EXCHANGE
                    found.append((Step(kind, you, me), after, taken))
        if asking.late is not None and asking.late.leader == me:
            late = self._answered(me, leader, you, asking.late)
            if late is not None:
                found.append((Step(StepKind.LATE_FETCH, you, me), late[0], self._without_late(follower)))
        return found

    @_remembered
    def _question(self, follower: int) -> Question | None:
        return self._steps.question(self.replicas.of[follower])

    @_remembered
    def _answered(self, me: int, leader: int, you: int, question: Question) -> tuple[int, Answer] | None:
        found = self._steps.answered(me, self.replicas.of[leader], you, question)
        return None if found is None else (self.replicas.number(found[0]), found[1])

    @_remembered
    def _taken(self, number: int, answer: Answer) -> tuple[int, int]:
        """A follower whose answer is lost; and one whose answer is on its way, if that is a step of its own, or else
        has arrived. They are the same if the answer changes nothing."""
        follower = self.replicas.of[number]
        idle, waiting = follower._replace(answer=None), follower._replace(answer=answer)
        taken = waiting if answer.kind is AnswerKind.OUT_OF_RANGE else self._steps.took(waiting)
        lost = self.replicas.number(idle)
        if taken == idle:
            return lost, lost
        return lost, self.replicas.number(waiting if self.bounds.late_answers else taken)

    @_remembered
    def _without_late(self, follower: int) -> int:
        return self.replicas.number(self.replicas.of[follower]._replace(late=None))

    # -- the controller ---------------------------------------------------------------------

    @_remembered
    def ordered(self, number: int) -> list[tuple[Step, int]]:
        """The steps of the controller alone, each with its number afterwards."""
        control = self.controls.of[number]
        return [
            (Step(kind, broker, after.leader, after.leader_epoch, after.isr), self.controls.number(after))
            for kind, found in (
                (StepKind.MOVE, self._control.moved(control)),
                (StepKind.SESSION_END, self._control.ended(control)),
                (StepKind.ELECT, self._control.elected(control)),
            )
            for broker, after in found
        ]


class Symmetry:
    """One way to rename the brokers of a state: `names[old]` is the new name, `old[new]` the old one."""

    def __init__(self, names: Sequence[int], replicas: Values[Replica], controls: Values[Control]) -> None:
        self.old = tuple(names.index(new) for new in range(len(names)))
        self._names = names
        self._replicas = replicas
        self._controls = controls

    @_remembered
    def replica(self, number: int) -> int:
        return self._replicas.number(renamed(self._replicas.of[number], self._names))

    @_remembered
    def control(self, number: int) -> int:
        return self._controls.number(renamed_control(self._controls.of[number], self._names))

    def of(self, state: State) -> State:
        replicas = [self.replica(each) for each in state[:-1]]
        return (*[replicas[old] for old in self.old], self.control(state[-1]))
