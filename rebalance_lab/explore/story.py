"""A schedule in plain words: what each step is, and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rebalance_lab.broker.log.epochs import UNDEFINED_EPOCH, LeaderEpochs
from rebalance_lab.broker.replication.fetch_state import FetchState
from rebalance_lab.explore.control import Control
from rebalance_lab.explore.model import Partition, State, Step, StepKind
from rebalance_lab.explore.properties import Property
from rebalance_lab.explore.replica import Answer, AnswerKind, Replica, Role
from rebalance_lab.explore.search import Counterexample
from rebalance_lab.wire.cluster import NO_LEADER

#: How records are called, in the order in which producers write them.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Story:
    """A counterexample, told. Brokers are numbered from 1. A record is shown as its leader epoch and a letter."""

    def __init__(self, partition: Partition, counterexample: Counterexample) -> None:
        self._partition = partition
        self._counterexample = counterexample
        self._letters: dict[tuple[int, int], str] = {}

    def beginning(self) -> str:
        brokers = self._partition.bounds.brokers
        return f"Broker 1 leads in epoch 0. All {brokers} replicas are empty and in sync."

    def steps(self) -> Iterator[tuple[str, list[str]]]:
        """Of each step: a sentence, and the lines of what it has changed."""
        before = self._counterexample.start
        for step, after in self._counterexample.steps:
            yield self._sentence(step, before, after), self._changes(before, after)
            before = after

    def end(self, broken: Property) -> str:
        """What is wrong in the last state. Call it after `steps`."""
        replicas, control = self._partition.values(self._counterexample.steps[-1][1])
        return {
            Property.COMMITTED: self._lost,
            Property.AGREEMENT: self._disagreement,
            Property.STRONG_ISR: self._not_in_true_isr,
            Property.WEAK_ISR: self._not_in_assumed_isr,
        }[broken](replicas, control)

    # -- names and lines --------------------------------------------------------------------

    def _record(self, log: Sequence[int], offset: int) -> str:
        return f"{log[offset]}:{self._letters.get((log[offset], offset), '?')}"

    def _log(self, log: Sequence[int]) -> str:
        return f"[{' '.join(self._record(log, offset) for offset in range(len(log)))}]"

    def _changes(self, before: State, after: State) -> list[str]:
        lines = [
            self._line(number, self._partition.replicas.of[new])
            for number, (old, new) in enumerate(zip(before[:-1], after[:-1], strict=True))
            if self._seen(old) != self._seen(new)
        ]
        old_control, control = self._partition.controls.of[before[-1]], self._partition.controls.of[after[-1]]
        if old_control.state != control.state:
            leader = "no leader" if control.leader == NO_LEADER else f"leader {control.leader + 1}"
            lines.append(f"ZooKeeper: {leader}, epoch {control.leader_epoch}, in sync {_listed(control.isr)}")
        return lines

    def _seen(self, number: int) -> tuple[object, ...]:
        replica = self._partition.replicas.of[number]
        assumed = None if replica.led is None else replica.led.isr
        return replica.log, replica.high_watermark, replica.role, replica.leader_epoch, replica.leader, assumed

    def _line(self, number: int, replica: Replica) -> str:
        role = {
            Role.IDLE: "waits for orders",
            Role.LEADER: f"leads in epoch {replica.leader_epoch}",
            Role.FOLLOWER: f"follows {replica.leader + 1} in epoch {replica.leader_epoch}",
        }[replica.role]
        return f"broker {number + 1} {role:<20} {self._log(replica.log):<20} high watermark {replica.high_watermark}"

    # -- steps ------------------------------------------------------------------------------

    def _sentence(self, step: Step, before: State, after: State) -> str:
        old, new = self._partition.values(before), self._partition.values(after)
        teller: Callable[[Step, Replica, Replica], str] | None = {
            StepKind.PRODUCE: self._produced,
            StepKind.EXCHANGE: self._exchanged,
            StepKind.REQUEST: self._requested,
            StepKind.LOST_ANSWER: self._lost_answer,
            StepKind.LATE_FETCH: self._late_fetch,
            StepKind.TAKE: self._took,
            StepKind.OBEY: self._obeyed,
            StepKind.CRASH: self._crashed,
            StepKind.POWER_LOSS: self._crashed,
        }.get(step.kind)
        if teller is not None:
            told = teller(step, old[0][step.broker], new[0][step.broker])
        else:
            told = self._controlled(step, old[1])
        return told + self._consequences(step, old[0], new[0])

    def _consequences(self, step: Step, before: Sequence[Replica], after: Sequence[Replica]) -> str:
        """What a leader concludes at once."""
        told = ""
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            if new.role is not Role.LEADER:
                continue
            if new.high_watermark > old.high_watermark:
                told += f" Broker {number + 1} commits up to offset {new.high_watermark}."
            if step.kind is not StepKind.SHRINK and new.led and new.led.proposed and not (old.led and old.led.proposed):
                told += f" Broker {number + 1} asks for the in-sync set {_listed(new.led.proposed)}."
        return told

    def _produced(self, step: Step, old: Replica, new: Replica) -> str:
        letter = _LETTERS[len(self._letters) % len(_LETTERS)]
        self._letters[new.log[-1], old.end] = letter
        return f"A producer writes {letter} to broker {step.broker + 1}."

    def _asked(self, step: Step, old: Replica) -> str:
        if old.fetching is FetchState.TRUNCATING:
            return f"Broker {step.broker + 1} asks broker {step.other + 1} where epoch {_latest(old)} ended"
        if old.answer is not None:
            return f"Broker {step.broker + 1} asks broker {step.other + 1} where its log ends"
        return f"Broker {step.broker + 1} fetches offset {old.end} from broker {step.other + 1}"

    def _exchanged(self, step: Step, old: Replica, new: Replica) -> str:
        return f"{self._asked(step, old)}, and {self._result(old, new)}."

    def _requested(self, step: Step, old: Replica, new: Replica) -> str:
        return f"{self._asked(step, old)}; the answer is on its way{self._content(new.answer)}."

    def _lost_answer(self, step: Step, old: Replica, _: Replica) -> str:
        return f"{self._asked(step, old)}; the answer is lost."

    def _took(self, step: Step, old: Replica, new: Replica) -> str:
        return f"The answer reaches broker {step.broker + 1}: it {self._result(old, new)}."

    def _late_fetch(self, step: Step, old: Replica, _: Replica) -> str:
        offset = -1 if old.late is None else old.late.offset
        return f"An old fetch of broker {step.broker + 1}, of offset {offset}, reaches broker {step.other + 1}."

    @staticmethod
    def _content(answer: Answer | None) -> str:
        if answer is None or answer.kind is not AnswerKind.RECORDS:
            return ""
        return f", with {'no' if answer.epoch == UNDEFINED_EPOCH else 'one'} record"

    def _result(self, old: Replica, new: Replica) -> str:
        """What an answer has made of a follower."""
        if new.end > old.end:
            return f"gets {self._record(new.log, old.end)}"
        if new.end < old.end:
            return f"truncates its log to offset {new.end}"
        if new.answer is not None:
            return "learns that the leader has no such offset"
        if new.high_watermark != old.high_watermark:
            return f"gets the high watermark {new.high_watermark}"
        if old.fetching is FetchState.TRUNCATING:
            return "keeps its log"
        return "gets nothing"

    def _obeyed(self, step: Step, old: Replica, new: Replica) -> str:
        me = step.broker + 1
        if new.role is Role.LEADER:
            return f"Broker {me} hears that it leads in epoch {step.number}."
        told = f"Broker {me} hears that broker {step.other + 1} leads in epoch {step.number}, and follows it."
        return told + (f" It truncates its log to its high watermark, {new.end}." if new.end < old.end else "")

    def _crashed(self, step: Step, old: Replica, new: Replica) -> str:
        me = step.broker + 1
        what = f"Broker {me} loses power" if step.kind is StepKind.POWER_LOSS else f"Broker {me} crashes"
        lost = f", without {self._log(old.log[new.end :])}" if new.end < old.end else ""
        return f"{what} and starts again{lost}, with the high watermark {new.high_watermark} of its checkpoint."

    @staticmethod
    def _controlled(step: Step, old: Control) -> str:
        me = step.broker + 1
        if step.kind is StepKind.SHRINK:
            gone = [each for each in old.isr if each not in step.isr]
            return f"Broker {me} drops broker {_listed(gone)} from the in-sync set for its lag."
        if step.kind is StepKind.EXPAND:
            return f"The controller writes the in-sync set that broker {me} has asked for."
        if step.kind is StepKind.ISR_ANSWER:
            return f"Broker {me} learns that its in-sync set is written."
        if step.kind is StepKind.SESSION_END:
            then = "There is no leader"
            if step.other != NO_LEADER:
                then = f"Broker {step.other + 1} {'still leads' if step.other == old.leader else 'is elected'}"
            return f"The session of broker {me} ends. {then}, in epoch {step.number}."
        return f"The controller gives the leadership to broker {me}, in epoch {step.number}."

    # -- what is wrong ----------------------------------------------------------------------

    def _lost(self, replicas: Sequence[Replica], control: Control) -> str:
        exposed = control.committed
        for each in control.isr:
            for offset in range(len(exposed)):
                if replicas[each].log[offset : offset + 1] != exposed[offset : offset + 1]:
                    return (
                        f"{self._record(exposed, offset)} was committed, and broker {each + 1}, which is in sync "
                        f"according to ZooKeeper, {self._has_not(replicas[each], offset)}. If it leads, the record is "
                        "lost."
                    )
        other = next(each for each in replicas if each.exposed != exposed[: len(each.exposed)])
        return f"Consumers could read {self._log(exposed)} before, and now {self._log(other.exposed)}."

    def _has_not(self, replica: Replica, offset: int) -> str:
        if offset >= replica.end:
            return "does not have it"
        return f"has {self._record(replica.log, offset)} in its place"

    def _disagreement(self, replicas: Sequence[Replica], _: Control) -> str:
        for number, one in enumerate(replicas):
            for other_number, other in enumerate(replicas[:number]):
                for offset in range(min(one.high_watermark, other.high_watermark)):
                    if one.log[offset] != other.log[offset]:
                        return (
                            f"Both high watermarks are above offset {offset}, where broker {other_number + 1} has "
                            f"{self._record(other.log, offset)} and broker {number + 1} "
                            f"{self._record(one.log, offset)}: the logs have diverged for good."
                        )
        raise ValueError("the replicas agree")

    def _not_in_true_isr(self, replicas: Sequence[Replica], control: Control) -> str:
        return self._not_in(replicas, lambda _: control.isr, "according to ZooKeeper")

    def _not_in_assumed_isr(self, replicas: Sequence[Replica], _: Control) -> str:
        return self._not_in(replicas, lambda leader: () if leader.led is None else leader.led.isr, "as it assumes")

    def _not_in(self, replicas: Sequence[Replica], isr: Callable[[Replica], Sequence[int]], whose: str) -> str:
        for number, leader in enumerate(replicas):
            for each in isr(leader):
                for offset in range(len(leader.exposed)):
                    if replicas[each].log[offset : offset + 1] != leader.exposed[offset : offset + 1]:
                        return (
                            f"Consumers can read {self._record(leader.log, offset)} at broker {number + 1}, and broker "
                            f"{each + 1}, which is in sync {whose}, {self._has_not(replicas[each], offset)}."
                        )
        raise ValueError("every in-sync replica has what consumers can read")


def _latest(replica: Replica) -> int:
    return LeaderEpochs(replica.epochs).latest


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(str(each + 1) for each in brokers)
