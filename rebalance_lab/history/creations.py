"""Topics that a client has asked brokers to create, as `roles.administrator` records it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

CREATE_TOPIC = "create-topic"


@dataclass(frozen=True, slots=True)
class Creation:
    """A topic that was asked for. `asked`: INVOKED. `answered`: OK, or FAILED_OP with `error`, the name of Kafka's
    error code; None if no broker has answered."""

    topic: str
    partitions: int
    replication: int
    asked: Event
    answered: Event | None

    @property
    def error(self) -> str | None:
        """The error code's name; None if the brokers have created it, or have not answered."""
        return None if self.answered is None or self.answered.kind is Kind.OK else str(self.answered.of("error"))


def creations(history: History) -> list[Creation]:
    """In the order in which they were asked for."""
    ended = {
        (event.actor, event.of("of")): event
        for event in events_of(history, Kind.OK, Kind.FAILED_OP)
        if event.of("op") == CREATE_TOPIC
    }
    return [
        Creation(
            str(event.topic),
            int(str(event.of("partitions"))),
            int(str(event.of("replication"))),
            event,
            ended.get((event.actor, event.n)),
        )
        for event in events_of(history, Kind.INVOKED)
        if event.of("op") == CREATE_TOPIC
    ]
