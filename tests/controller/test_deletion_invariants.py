"""Whatever happens to brokers while a topic is deleted, it goes once all of them are back and answer."""

from __future__ import annotations

from collections import deque

from controller_machine import EPOCH, T0, T1, broker, machine
from hypothesis import given
from hypothesis import strategies as st

from controller.cluster import LiveBroker, Stored, Topic
from controller.request_batch import Send
from controller.stimuli import (
    BrokersRead,
    DeletionsRead,
    HandBack,
    LeadershipAnswered,
    Loaded,
    RemoveTopic,
    ReplicasDeleted,
    ShutdownAsked,
    StatesWritten,
    Stimulus,
    TopicRemoved,
    WriteStates,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.stop_replica import StopReplicaRequest

BROKERS = (1, 2, 3)
ANY = st.sampled_from(BROKERS)

#: Who is registered, and how many lives later; who shuts down; whose disk fails; which of the requests to delete is
#: answered, and whether its replicas are deleted.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("brokers"), st.dictionaries(ANY, st.integers(0, 1))),
        st.tuples(st.just("shutdown"), ANY),
        st.tuples(st.just("disk"), ANY),
        st.tuples(st.just("answer"), st.tuples(st.integers(0, 5), st.booleans())),
    ),
    max_size=14,
)


class Deletion:
    """Topic t has a replica of partition 0 on each broker, and of partition 1 on two. It is to be deleted."""

    def __init__(self, live: set[int]) -> None:
        self.removed = False
        self.lives = dict.fromkeys(live, 1)
        self._machine = machine()
        #: Requests to delete that were not answered: the broker, its life and the replicas.
        self.asked: list[tuple[int, int, list[TopicPartition]]] = []
        self.carry_out(Loaded(self._brokers(), {"t": Topic({0: BROKERS, 1: (2, 3)})}, {}))
        self.carry_out(DeletionsRead(["t"]))

    def _brokers(self) -> list[LiveBroker]:
        return [broker(each, 100 * life + each) for each, life in self.lives.items()]

    def carry_out(self, stimulus: Stimulus) -> None:
        waiting = deque([stimulus])
        while waiting:
            for each in self._machine.handle(waiting.popleft()):
                match each:
                    case HandBack():
                        waiting.append(each.stimulus)
                    case WriteStates():
                        written = {
                            partition: Stored(state, EPOCH, 0 if version is None else version + 1)
                            for partition, (state, version) in each.states.items()
                        }
                        waiting.append(StatesWritten(written, of=each.of))
                    case RemoveTopic():
                        self.removed = True
                        waiting.append(TopicRemoved(each.topic))
                    case Send(request=StopReplicaRequest() as request):
                        replicas = [
                            partition
                            for partition in (T0, T1)
                            for topic in request.topic_states
                            for state in topic.partition_states
                            if state.delete_partition and state.partition_index == partition.partition
                        ]
                        if replicas:
                            self.asked.append((each.broker_id, self.lives[each.broker_id], replicas))

    def registered(self, lives: dict[int, int]) -> None:
        self.lives = lives
        self.carry_out(BrokersRead(self._brokers()))

    def answered(self, which: int, *, succeeds: bool = True) -> None:
        """One of the requests; in vain if its broker is gone."""
        broker_id, life, replicas = self.asked.pop(which)
        if self.lives.get(broker_id) == life:
            self.carry_out(ReplicasDeleted(broker_id, replicas, () if succeeds else replicas))


@given(st.sets(ANY), STEPS)
def test_a_topic_goes_once_all_its_brokers_are_back(live: set[int], steps: list[tuple[str, object]]) -> None:
    it = Deletion(live)
    for kind, what in steps:
        if kind == "brokers" and isinstance(what, dict):
            it.registered({each: it.lives.get(each, 1) + more for each, more in what.items()})
        elif kind == "shutdown" and isinstance(what, int):
            it.carry_out(ShutdownAsked(what, -1, lambda _error, _remaining: None))
        elif kind == "disk" and isinstance(what, int):
            it.carry_out(LeadershipAnswered(what, (), {T0: ErrorCode.KAFKA_STORAGE_ERROR}))
        elif kind == "answer" and isinstance(what, tuple) and what[0] < len(it.asked):
            it.answered(what[0], succeeds=what[1])
    it.registered(dict.fromkeys(BROKERS, 50))
    while it.asked:
        it.answered(0)
    assert it.removed
