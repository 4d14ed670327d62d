"""How many replicas of a partition must be in sync: `min.insync.replicas`, by the trial and by the registry."""

from __future__ import annotations

from rebalance_lab.checks.faults import TOLERANCE_US
from rebalance_lab.checks.frozen_isr import bound_us
from rebalance_lab.checks.partition_states import Place, assigned, creations, partition_states, place_of, replicas_at
from rebalance_lab.checks.topic_settings import own_settings
from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History

_SETTING = "min.insync.replicas"


def commits_below(history: History) -> bool:
    """Whether the brokers of a trial are as up to Kafka 3.6: the high watermark rises also while too few are in sync
    (KAFKA-15583)."""
    return history.trial.parameters.get("commits_under_min_isr") is True


class LeastInSync:
    """By the settings of topics and brokers, and from Kafka 3.7 on by the number of replicas, which is enough if it is
    smaller (`Partition.effectiveMinIsr`, 3.9.1; up to 3.6 the setting alone counts, KAFKA-15583). None of it is what
    a broker says."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._states: dict[tuple[Place, int], list[Event]] = {}
        for place, states in partition_states(history).items():
            for event, state in states:
                self._states.setdefault((place, state.leader_epoch), []).append(event)

    def during(self, leads: Event, end_us: float) -> int:
        """The smallest number that the leader of a LEADS may have gone by from then until `end_us`. It hears of a
        change in the registry later. 0 if the registry does not have its leader epoch. Raises KafkaException for a
        malformed znode."""
        place = place_of(leads)
        setting = self._setting(place.topic, leads.at_us, end_us)
        return setting if commits_below(self._history) else min(setting, self._replicas(place, leads, end_us))

    def _setting(self, topic: str, begin_us: int, end_us: float) -> int:
        """The smallest that stood in this time, and shortly before it: a broker is as late as with an order. It has
        read what stood when the topic was created."""
        parameters = self._history.trial.parameters
        of_brokers = int(str(parameters.get("min_isr", 1)))
        created_us = [each.at_us for each in creations(self._history).get(topic, ()) if each.at_us <= begin_us]
        since_us = max([begin_us - bound_us(parameters), *created_us])
        stood = [of_brokers]
        for event, own in own_settings(self._history).get(topic, ()):
            if event.at_us > end_us + TOLERANCE_US:
                break
            text = own.get(_SETTING, "").strip()
            value = int(text) if text.isdecimal() else of_brokers
            stood = [value] if event.at_us <= since_us else [*stood, value]
        return min(stood)

    def _replicas(self, place: Place, leads: Event, end_us: float) -> int:
        """The fewest that the topic's znode had since the leader epoch was written, of which the leader was told."""
        its = self._states.get((place, int(str(leads.of("leader_epoch")))), [])
        began = [event for event in its if event.at_us <= leads.at_us + TOLERANCE_US]
        if not began:
            return 0
        later = [
            len(brokers)
            for write, brokers in assigned(self._history).get(place, ())
            if began[-1].at_us < write.at_us <= end_us + TOLERANCE_US
        ]
        return min([len(replicas_at(self._history, place, began[-1])), *later])
