"""What brokers record of partitions with replicas, and of their controllers.

*Belief*: which replica leads, which are in sync and what is committed, as a broker has it in memory. *Effect*: what was
written to a log, and cut off it. The *registry* has the state znodes, `/controller` and `/controller_epoch`. Events of
replicas carry topic and partition; `member` is the broker's name. A belief ends with the next one, and with the
broker's process.
"""

from __future__ import annotations

from rebalance_lab.history.events import Event, Kind, Layer, new_kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import events_of

#: From here the broker believes that it leads. detail: leader_epoch, controller_epoch, isr, replicas, end_offset,
#: high_watermark.
LEADS = new_kind("leads", Layer.BELIEF)

#: From here it follows. detail: leader, leader_epoch, end_offset, high_watermark.
FOLLOWS = new_kind("follows", Layer.BELIEF)

#: From here it has no role. detail: role (offline, stopped).
REPLICA_ENDED = new_kind("replica-ended", Layer.BELIEF)

#: A leader's view of the ISR. detail: leader_epoch, isr (committed, as it knows), proposed (asked for; or None).
ISR_ASSUMED = new_kind("isr-assumed", Layer.BELIEF)

#: A leader counts all below as committed. detail: offset, leader_epoch.
COMMITTED = new_kind("committed", Layer.BELIEF)

#: A leader has written a client's batch. detail: leader_epoch, first, last (offsets).
APPENDED = new_kind("appended", Layer.EFFECT)

#: A follower has cut off records. detail: from_offset (the log's end before), to_offset, high_watermark (before),
#: leader_epoch.
TRUNCATED = new_kind("truncated", Layer.EFFECT)

#: From here the broker believes that it is the controller. detail: epoch.
CONTROLS = new_kind("controls", Layer.BELIEF)

#: From here it does not. detail: why.
CONTROLS_NO_MORE = new_kind("controls-no-more", Layer.BELIEF)

#: By the names under which a broker reports them.
REPLICA_KINDS: dict[str, Kind] = {
    each.value: each
    for each in (LEADS, FOLLOWS, REPLICA_ENDED, ISR_ASSUMED, COMMITTED, APPENDED, TRUNCATED, CONTROLS, CONTROLS_NO_MORE)
}


def largest_isr(event: Event) -> frozenset[int]:
    """Of a LEADS or ISR_ASSUMED: the ISR that the leader knows, and the one that it has asked for (KIP-497)."""
    isrs = [event.of("isr"), event.of("proposed")]
    return frozenset(int(broker) for each in isrs if isinstance(each, list | tuple) for broker in each)


#: The read of one broker's replica at the end, whatever its role is: an operation of a client. Its OK has `broker` and
#: `records`, of which each is (offset, leader epoch, number), as in `history.writes`.
READ_REPLICA = "read-replica"


def replica_reads(history: History) -> dict[int, Event]:
    """The last complete read of each broker's replica."""
    found = {}
    for event in events_of(history, Kind.OK):
        if event.of("op") == READ_REPLICA:
            found[int(str(event.of("broker")))] = event
    return found
