"""What brokers record of partitions with replicas, and of their controllers.

*Belief*: which replica leads, which are in sync and what is committed, as a broker has it in memory. *Effect*: what was
written to a log, and cut off it. *Op*: what a broker asks of its controller. The *registry* has the state znodes,
`/controller` and `/controller_epoch`. Events of replicas carry topic and partition; `member` is the broker's name. A
belief ends with the next one, and with the broker's process.
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

#: A follower has written what it fetched. detail: end_offset (of its log, after that), leader_epoch.
REPLICATED = new_kind("replicated", Layer.EFFECT)

#: From here a fetcher of the broker gets the partition's records. detail: leader (the broker that it asks),
#: leader_epoch, fetcher (its number in this process).
FETCHES = new_kind("fetches", Layer.EFFECT)

#: From here it does not. detail: leader, fetcher.
FETCHES_NO_MORE = new_kind("fetches-no-more", Layer.EFFECT)

#: From here the broker acts by an order of a controller. detail: order (leader-and-isr, stop-replica, update-metadata),
#: controller, controller_epoch, broker_epoch (of the life for which it was meant; -1: any, or it is not known).
OBEYS = new_kind("obeys", Layer.BELIEF)

#: What a broker tells clients of a partition from here on. detail: leader, leader_epoch, isr.
METADATA_KNOWN = new_kind("metadata-known", Layer.BELIEF)

#: From here a broker tells clients that there is no such partition.
METADATA_FORGOTTEN = new_kind("metadata-forgotten", Layer.BELIEF)

#: The brokers that a broker considers live from here on. detail: brokers.
BROKERS_KNOWN = new_kind("brokers-known", Layer.BELIEF)

#: What a controller takes for the state of a partition from here on. detail: epoch (the controller's), leader,
#: leader_epoch, isr.
STATE_KNOWN = new_kind("state-known", Layer.BELIEF)

#: From here the broker believes that it is the controller. detail: epoch.
CONTROLS = new_kind("controls", Layer.BELIEF)

#: From here it does not. detail: why.
CONTROLS_NO_MORE = new_kind("controls-no-more", Layer.BELIEF)

#: From here the broker asks the controller to have others lead what it leads, because it is to close.
SHUTS_DOWN = new_kind("shuts-down", Layer.OP)

#: By the names under which a broker reports them.
REPLICA_KINDS: dict[str, Kind] = {
    each.value: each
    for each in (
        LEADS,
        FOLLOWS,
        REPLICA_ENDED,
        ISR_ASSUMED,
        COMMITTED,
        APPENDED,
        TRUNCATED,
        REPLICATED,
        FETCHES,
        FETCHES_NO_MORE,
        OBEYS,
        METADATA_KNOWN,
        METADATA_FORGOTTEN,
        BROKERS_KNOWN,
        STATE_KNOWN,
        CONTROLS,
        CONTROLS_NO_MORE,
        SHUTS_DOWN,
    )
}


def largest_isr(event: Event) -> frozenset[int]:
    """Of a LEADS or ISR_ASSUMED: the ISR that the leader knows, and the one that it has asked for (KIP-497)."""
    isrs = [event.of("isr"), event.of("proposed")]
    return frozenset(int(broker) for each in isrs if isinstance(each, list | tuple) for broker in each)


def high_watermark_in(event: Event) -> int:
    """Of a LEADS or COMMITTED: the leader's high watermark from then on."""
    return int(str(event.of("offset" if event.kind is COMMITTED else "high_watermark")))


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
