"""Payloads of a cluster's znodes: brokers, topics, partition states, the controller, configurations.

Written as Kafka 3.9 writes them, and brokers also as 0.8.2 does; read in every version up to 3.9's
(`kafka.zk.ZkData`, 3.9.1). Readers ignore unknown fields. What the 0.8 consumer reads of brokers and topics, and how
leniently, is in `wire.payloads`.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec

from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import (
    CLUSTER_ID,
    CONTROLLER,
    FEATURE,
    PREFERRED_ELECTION,
    REASSIGNMENT,
    broker_path,
    partition_state_path,
    topic_path,
)
from rebalance_lab.wire.payloads import broker_payload

#: In a partition's state: there is no leader.
NO_LEADER = -1
#: In place of a leader, in metadata only: the partition's topic is being deleted (`LeaderAndIsr.LeaderDuringDelete`).
LEADER_DURING_DELETE = -2

PLAINTEXT = "PLAINTEXT"

T = TypeVar("T")


Id = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Partition = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Epoch = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Port = Annotated[int, msgspec.Meta(ge=-1, le=65535)]
Level = Annotated[int, msgspec.Meta(ge=1, le=2**15 - 1)]


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A broker's `/brokers/ids/<id>`, versions 1 to 5. The id is in the path.

    `endpoints`: `LISTENER://host:port`, from version 2 on; `host` and `port` are those of its first plaintext endpoint,
    or None and -1. `timestamp`: epoch ms as text. `rack`: from version 3 on.
    """

    version: int
    host: str | None
    port: Port
    jmx_port: int = -1
    timestamp: str = "-1"
    endpoints: tuple[str, ...] = ()
    listener_security_protocol_map: dict[str, str] = msgspec.field(default_factory=dict)
    rack: str | None = None

    @property
    def address(self) -> tuple[str, int] | None:
        """Where clients reach it without encryption; None if it has no such endpoint."""
        return None if self.host is None or self.port < 0 else (self.host, self.port)


class TopicAssignment(msgspec.Struct, frozen=True, kw_only=True):
    """A topic's `/brokers/topics/<topic>`, versions 1 to 3.

    `partitions`: partition -> ids of the brokers that hold it, the preferred leader first. `topic_id`: from version 3
    on, as `topic_id_text` writes it.
    """

    version: int
    partitions: dict[Partition, tuple[Id, ...]]
    adding_replicas: dict[Partition, tuple[Id, ...]] = msgspec.field(default_factory=dict)
    removing_replicas: dict[Partition, tuple[Id, ...]] = msgspec.field(default_factory=dict)
    topic_id: str | None = None

    @property
    def replicas(self) -> dict[int, tuple[int, ...]]:
        """Partition -> its brokers, partitions ascending."""
        return dict(sorted(self.partitions.items()))


class LeaderIsrAndControllerEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """A partition's `/brokers/topics/<topic>/partitions/<partition>/state`.

    `leader`: a broker, or NO_LEADER. `leader_recovery_state`: 1 while a leader from outside the ISR recovers (3.2).
    """

    controller_epoch: Epoch
    leader: int
    leader_epoch: Epoch
    isr: tuple[Id, ...]
    leader_recovery_state: int = 0
    version: int = 1


#: A controller that takes over reads one for each partition.
_state = msgspec.json.Decoder(LeaderIsrAndControllerEpoch)


class ControllerRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """`/controller`, versions 1 and 2. `timestamp`: epoch ms as text."""

    version: int
    brokerid: Id
    timestamp: str = "-1"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """`/config/topics/<topic>` and `/config/brokers/<id>`: settings that override the defaults, as text."""

    version: int = 1
    config: dict[str, str] = msgspec.field(default_factory=dict)


class ConfigurationChange(msgspec.Struct, frozen=True, kw_only=True):
    """`/config/changes/config_change_<n>`, versions 1 (0.9) and 2: whose settings have changed."""

    version: int
    entity_type: str = ""
    entity_name: str = ""
    entity_path: str = ""

    @property
    def path(self) -> str:
        """`topics/<topic>` or `brokers/<id>`."""
        return self.entity_path or f"{self.entity_type}/{self.entity_name}"


class _NamedPartition(msgspec.Struct, frozen=True):
    topic: str
    partition: Id


class _NamedPartitions(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    partitions: tuple[_NamedPartition, ...]


class _Reassigned(msgspec.Struct, frozen=True):
    topic: str
    partition: Id
    replicas: tuple[Id, ...]


class _Reassignments(msgspec.Struct, frozen=True, kw_only=True):
    version: int = 1
    partitions: tuple[_Reassigned, ...]


class _LogDirEvent(msgspec.Struct, frozen=True, kw_only=True):
    """`event`: 1, a log folder has failed. It is written, and not read."""

    version: int = 1
    broker: int
    event: int = 1


class _Levels(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`min_version_level`: in version 1 only."""

    max_version_level: Level
    min_version_level: Level | None = None


class FinalizedFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """`/feature`, versions 1 and 2 (from protocol 3.3 on): whether the brokers' features are finalized for the cluster
    (KIP-584), and the finalized level of each."""

    version: int = 1
    enabled: bool
    levels: dict[str, int] = msgspec.field(default_factory=dict)


class _Features(msgspec.Struct, frozen=True, kw_only=True):
    features: dict[str, _Levels]
    version: Annotated[int, msgspec.Meta(ge=1, le=2)]
    status: Annotated[int, msgspec.Meta(ge=0, le=1)]


class _ClusterId(msgspec.Struct, frozen=True):
    """`/cluster/id`. The version is a text."""

    version: str
    id: str


def registration_payload(
    host: str, port: int, *, timestamp_ms: int, version: int = 5, rack: str | None = None, jmx_port: int = -1
) -> bytes:
    """`/brokers/ids/<id>` of a broker with one plaintext listener, as 0.8.2 (version 1) or 3.9 (version 5) writes it.

    Raises ValueError for another version, and for a rack in version 1.
    """
    if version == 1:
        if rack is not None:
            raise ValueError(f"rack {rack}: a registration of version 1 has no rack; use version 5")
        return broker_payload(host, port, timestamp_ms=timestamp_ms, jmx_port=jmx_port)
    if version != 5:
        raise ValueError(f"a registration of version {version}: give 1 (0.8.2) or 5 (3.9)")
    fields: dict[str, object] = {
        "features": {},
        "listener_security_protocol_map": {PLAINTEXT: PLAINTEXT},
        "endpoints": [f"{PLAINTEXT}://{host}:{port}"],
        "jmx_port": jmx_port,
        "port": port,
        "host": host,
        "version": version,
        "timestamp": str(timestamp_ms),
    }
    return msgspec.json.encode(fields if rack is None else {"rack": rack, **fields})


def assignment_payload(
    replicas: Mapping[int, Sequence[int]],
    topic_id: bytes | None = None,
    *,
    adding: Mapping[int, Sequence[int]] | None = None,
    removing: Mapping[int, Sequence[int]] | None = None,
) -> bytes:
    """`/brokers/topics/<topic>`: version 3 with a topic id, version 2 without. `adding`, `removing`: of partitions that
    are being reassigned."""
    fields: dict[str, object] = {"partitions": _by_number(replicas)}
    if topic_id is not None:
        fields["topic_id"] = topic_id_text(topic_id)
    fields |= {"adding_replicas": _by_number(adding or {}), "removing_replicas": _by_number(removing or {})}
    return msgspec.json.encode(fields | {"version": 2 if topic_id is None else 3})


def _by_number(replicas: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {each: tuple(replicas[each]) for each in sorted(replicas)}


def topic_id_text(topic_id: bytes) -> str:
    """16 bytes in base64 for URLs, without padding: 22 characters (`org.apache.kafka.common.Uuid`)."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def topic_id_bytes(text: str) -> bytes:
    """The 16 bytes of a topic id. Raises KafkaException."""
    try:
        found = urlsafe_b64decode(f"{text}==")
    except ValueError:
        found = b""
    if len(found) != 16:
        raise KafkaException(f"{text!r} is not a topic id: 16 bytes in base64 for URLs have 22 characters")
    return found


def state_payload(state: LeaderIsrAndControllerEpoch) -> bytes:
    """`…/partitions/<partition>/state`, the fields in Kafka's order."""
    fields: dict[str, object] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": state.version,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    }
    if state.leader_recovery_state:
        fields["leader_recovery_state"] = state.leader_recovery_state
    return msgspec.json.encode(fields)


def controller_payload(broker_id: int, *, timestamp_ms: int) -> bytes:
    """`/controller`, version 2."""
    return msgspec.json.encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    )


def configuration_payload(config: Mapping[str, str]) -> bytes:
    """`/config/topics/<topic>` or `/config/brokers/<id>`, names in order."""
    return msgspec.json.encode({"version": 1, "config": dict(sorted(config.items()))})


def configuration_change_payload(entity_path: str) -> bytes:
    """`/config/changes/config_change_<n>`, version 2. `entity_path`: `topics/<topic>` or `brokers/<id>`."""
    return msgspec.json.encode({"version": 2, "entity_path": entity_path})


def isr_change_payload(partitions: Sequence[tuple[str, int]]) -> bytes:
    """`/isr_change_notification/isr_change_…`: the partitions whose leaders have written another ISR."""
    return _named(partitions)


def log_dir_event_payload(broker_id: int) -> bytes:
    """`/log_dir_event_notification/log_dir_event_…`: a log folder of this broker has failed (KIP-112)."""
    return msgspec.json.encode(_LogDirEvent(broker=broker_id))


def features_payload(features: FinalizedFeatures) -> bytes:
    """`/feature`, the fields in the order of 3.9.1. In version 1 the least level is that which is finalized."""
    first = features.version == 1
    levels = {
        name: _Levels(max_version_level=each, min_version_level=each if first else None)
        for name, each in features.levels.items()
    }
    return msgspec.json.encode(_Features(features=levels, version=features.version, status=int(features.enabled)))


def preferred_election_payload(partitions: Sequence[tuple[str, int]]) -> bytes:
    """`/admin/preferred_replica_election`: the partitions that their preferred leaders are to lead."""
    return _named(partitions)


def reassignment_payload(targets: Iterable[tuple[tuple[str, int], Sequence[int]]]) -> bytes:
    """`/admin/reassign_partitions`: partitions, and the replicas that each is to have."""
    wanted = tuple(_Reassigned(*each, tuple(target)) for each, target in targets)
    return msgspec.json.encode(_Reassignments(partitions=wanted))


def cluster_id_payload(cluster_id: str) -> bytes:
    """`/cluster/id`."""
    return msgspec.json.encode(_ClusterId("1", cluster_id))


@lru_cache(maxsize=1 << 10)
def read_registration(broker_id: int, data: bytes) -> Registration:
    """Raises KafkaException, which names the path."""
    return _read(Registration, data, broker_path(broker_id))


@lru_cache(maxsize=1 << 10)
def read_assignment(topic: str, data: bytes) -> TopicAssignment:
    """Raises KafkaException, which names the path, also if a partition is not a number as Kafka writes it."""
    return _read(TopicAssignment, data, topic_path(topic))


def read_state(topic: str, partition: int, data: bytes) -> LeaderIsrAndControllerEpoch:
    """Raises KafkaException, which names the path."""
    try:
        return _state.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(partition_state_path(topic, partition), data, error) from None


def read_controller(data: bytes) -> ControllerRegistration:
    """`/controller`; a bare number is the form before 0.8.1. Raises KafkaException, which names the path."""
    if data.isdigit():
        return ControllerRegistration(version=0, brokerid=int(data))
    return _read(ControllerRegistration, data, CONTROLLER)


def read_configuration(path: str, data: bytes) -> dict[str, str]:
    """The settings at `path`. Raises KafkaException, which names the path."""
    return _read(Configuration, data, path).config


def read_configuration_change(path: str, data: bytes) -> str:
    """The path below `/config` of what has changed. A bare text is a topic, as 0.8.2 writes it. Raises KafkaException,
    which names the path."""
    if data.startswith(b'"'):
        return f"topics/{_read(str, data, path)}"
    return _read(ConfigurationChange, data, path).path


def read_isr_change(path: str, data: bytes) -> list[tuple[str, int]]:
    """Raises KafkaException."""
    return _read_named(data, path)


def read_log_dir_event(path: str, data: bytes) -> int:
    """The broker whose log folder has failed. Raises KafkaException."""
    return _read(_LogDirEvent, data, path).broker


def read_features(data: bytes) -> FinalizedFeatures:
    """Raises KafkaException, which names the path, also if version 1 has levels without a least one (`FeatureZNode`,
    3.9.1)."""
    found = _read(_Features, data, FEATURE)
    for name, each in found.features.items():
        least = each.min_version_level
        if found.version == 1 and (least is None or least > each.max_version_level):
            raise KafkaException(f"{FEATURE}: feature {name} has no levels from a least one to a greatest one")
    levels = {name: each.max_version_level for name, each in found.features.items()}
    return FinalizedFeatures(version=found.version, enabled=bool(found.status), levels=levels)


def read_preferred_election(data: bytes) -> list[tuple[str, int]]:
    """Raises KafkaException, which names the path."""
    return _read_named(data, PREFERRED_ELECTION)


def read_reassignment(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """Raises KafkaException, which names the path."""
    found = _read(_Reassignments, data, REASSIGNMENT).partitions
    return {(each.topic, each.partition): each.replicas for each in found}


def read_cluster_id(data: bytes) -> str:
    """Raises KafkaException, which names the path."""
    return _read(_ClusterId, data, CLUSTER_ID).id


def _named(partitions: Sequence[tuple[str, int]]) -> bytes:
    return msgspec.json.encode(_NamedPartitions(partitions=tuple(_NamedPartition(*each) for each in partitions)))


def _read_named(data: bytes, path: str) -> list[tuple[str, int]]:
    """Raises KafkaException."""
    return [(each.topic, each.partition) for each in _read(_NamedPartitions, data, path).partitions]


def _read(kind: type[T], data: bytes, path: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, data, error) from None


def _unreadable(path: str, data: bytes, error: Exception) -> KafkaException:
    return KafkaException(f"{path} holds {data[:200].decode(errors='replace')!r}: {error}")
