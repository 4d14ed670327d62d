"""Events: the lines of a history.

A trial writes only events; every verdict is computed from them later. There are three layers: *belief* (what a member
thinks it owns), *registry* (what ZooKeeper or a coordinator says) and *effect* (the work that was really done). Every
anomaly is a difference between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter

import msgspec

#: (actor, n): n counts the actor's events from 0.
EventId = tuple[str, int]


class Layer(StrEnum):
    BELIEF = "belief"
    REGISTRY = "registry"
    EFFECT = "effect"
    FAULT = "fault"
    OP = "op"


class Kind(StrEnum):
    """What happened. Each kind belongs to one layer (`LAYER_OF`)."""

    # belief: the member's in-memory registry
    OWNED = "owned"  # from here the member believes it owns topic/partition
    DISOWNED = "disowned"  # from here it does not; emitted before the release is sent

    # registry: from the server's transaction log; detail: path, and data where it has some
    SESSION_OPENED = "session-opened"  # detail: timeout_ms
    SESSION_CLOSED = "session-closed"  # expiry or close(): the log does not say which; detail: ephemerals, sampled
    CREATED = "created"  # detail: path, data, ephemeral
    CHANGED = "changed"
    DELETED = "deleted"  # also of each ephemeral znode that went with its session; detail: with_session, sampled
    FAILED = "failed"  # a write that ZooKeeper refused; detail: code

    # effect: a lease, until there are brokers
    # the member worked on topic/partition at this moment; detail: last, where it stopped, having worked until now
    WORKED = "worked"

    # fault; detail: fault (its name), target (an actor)
    FAULT_BEGAN = "fault-began"
    FAULT_BIT = "fault-bit"  # the proof of effect; detail: proof
    FAULT_ENDED = "fault-ended"

    # op: ZooKeeper operations, in pairs; detail: op, path, `of` (n of the invocation), `watch` where a read sets one
    INVOKED = "invoked"
    OK = "ok"
    FAILED_OP = "fail"  # it was certainly not done; detail: error
    INFO = "info"  # it may have been done; detail: error
    WATCH_FIRED = "watch-fired"  # detail: path, event
    OPERATIONS = "operations"  # with --ops counts, instead of each; detail: since_us, counts (op -> n), failed, unknown

    # op: a member's life
    PROCESS_STARTED = "host-started"  # the OS process; detail: pid, boot_id, time_namespace
    LISTENING = "listening"  # the node takes connections; detail: host, port
    # connections to a peer are cut, slow, or as before; detail: peer, number, and what the state before did:
    # held_bytes, slowed_bytes, hung (connection attempts)
    LINK_SET = "link-set"
    MEMBER_STARTED = "member-started"  # detail: host, rules, assignor, its settings; group_given where it named none
    MEMBER_REFUSED = "member-refused"  # its settings or its id were refused; detail: error, group_given
    MEMBER_CLOSING = "member-closing"
    MEMBER_CLOSED = "member-closed"
    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    EXPIRED = "expired"
    NOTIFICATION_QUEUED = "notification-queued"  # a listener call waits on the event queue; detail: path
    NOTIFICATION_HANDLED = "notification-handled"
    REBALANCE_TRIGGERED = "rebalance-triggered"
    REBALANCE_BEGAN = "rebalance-began"
    ATTEMPT_BEGAN = "attempt-began"
    DECIDED = "decided"  # the member has read its view and decided; detail: members, view, wants, members_zxid if known
    ATTEMPT_FAILED = "attempt-failed"  # detail: why, reason (conflict, error, shutdown), conflicts (as wants)
    REBALANCE_ENDED = "rebalance-ended"  # detail: outcome (ok, failed, shutdown)
    WARNED = "warned"  # what Kafka would have logged; detail: message

    # op: the runner's
    TRIAL_BEGAN = "trial-began"
    PHASE = "phase"  # detail: name
    # what an outside session read; detail: path, children; of owners also owners (partition -> data), sessions
    # (partition -> the session that holds it) and owners_zxid, of the reply that these two came with
    OBSERVED = "observed"
    REST_REACHED = "rest-reached"  # detail: phase
    REST_MISSED = "rest-missed"  # no rest in time: outcomes are unknown; detail: phase, why[, gave_up, at_rest]
    TRIAL_ENDED = "trial-ended"

    @classmethod
    def _missing_(cls, value: object) -> Kind | None:
        return _ADDED.get(value)


#: Kinds that subjects outside this module added (`new_kind`), by value.
_ADDED: dict[object, Kind] = {}


_REGISTRY = (Kind.SESSION_OPENED, Kind.SESSION_CLOSED, Kind.CREATED, Kind.CHANGED, Kind.DELETED, Kind.FAILED)

LAYER_OF: dict[Kind, Layer] = {
    **dict.fromkeys(Kind, Layer.OP),
    **dict.fromkeys((Kind.OWNED, Kind.DISOWNED), Layer.BELIEF),
    **dict.fromkeys(_REGISTRY, Layer.REGISTRY),
    Kind.WORKED: Layer.EFFECT,
    **dict.fromkeys((Kind.FAULT_BEGAN, Kind.FAULT_BIT, Kind.FAULT_ENDED), Layer.FAULT),
}


def new_kind(value: str, layer: Layer) -> Kind:
    """Add a kind of one layer, for a subject with events of its own. A process that reads a history must have added the
    kinds in it. Raises ValueError if the kind already exists."""
    if value in _ADDED or value in Kind._value2member_map_:
        raise ValueError(f"there is a kind of event {value} already; choose another name")
    kind = str.__new__(Kind, value)
    kind._name_, kind._value_ = value.upper().replace("-", "_"), value
    _ADDED[value] = kind
    LAYER_OF[kind] = layer
    return kind


class Event(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):  # histories are large, and hold no cycles
    """One line. Shapes and units:

    - `actor`: who recorded it (a member's process, `runner`, `zookeeper`); `n`: its count.
    - `at_us`: virtual time, or CLOCK_MONOTONIC of the host.
    - `member`: consumer id (`<group>_<host>-<ms>-<hex>`), where the event is about a member.
    - `session`: ZooKeeper session id, as text `0x…` (64 bits do not fit JSON readers).
    - `zxid`: of the transaction or reply; `cause`: id of the event that caused this one.
    """

    actor: str
    n: int
    at_us: int
    layer: Layer
    kind: Kind
    member: str | None = None
    session: str | None = None
    group: str | None = None
    generation: int | None = None
    topic: str | None = None
    partition: int | None = None
    epoch: int | None = None
    zxid: int | None = None
    cause: EventId | None = None
    detail: dict[str, object] | None = None

    @property
    def id(self) -> EventId:
        return (self.actor, self.n)

    def of(self, name: str) -> object:
        """A field of `detail`, None where it is missing."""
        return None if self.detail is None else self.detail.get(name)


@lru_cache(maxsize=1 << 14)  # almost every event names one
def session_text(session_id: int) -> str:
    """A session id in the form that histories, logs and ZooKeeper's own tools use."""
    return f"{session_id & 0xFFFFFFFFFFFFFFFF:#x}"


#: The merge order of a history: (at_us, actor, n).
order: Callable[[Event], tuple[int, str, int]] = attrgetter("at_us", "actor", "n")


_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    """The event as one JSON line without its line feed. The same event gives the same bytes everywhere."""
    return _encoder.encode(event)


def encode_lines(events: Iterable[Event]) -> bytes:
    """The events as lines, each with its line feed."""
    return _encoder.encode_lines(events)


def decode(line: bytes) -> Event:
    """The event of a line. Raises msgspec.DecodeError, or UnicodeDecodeError for broken UTF-8."""
    return _decoder.decode(line)
