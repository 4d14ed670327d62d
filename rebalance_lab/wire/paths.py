"""Where Kafka keeps what in ZooKeeper (`kafka.utils.ZkUtils`, 0.8.2; `kafka.zk.ZkData`, 3.9.1)."""

from __future__ import annotations

import re

CONSUMERS = "/consumers"
BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"
CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG_CHANGES = "/config/changes"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
REASSIGNMENT = "/admin/reassign_partitions"
FEATURE = "/feature"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"

_STATE = re.compile(rf"{BROKER_TOPICS}/([^/]+)/partitions/([0-9]+)/state")


def broker_path(broker_id: int | str) -> str:
    """`/brokers/ids/<id>`."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """`/brokers/topics/<topic>`."""
    return f"{BROKER_TOPICS}/{topic}"


def partition_state_path(topic: str, partition: int) -> str:
    """`/brokers/topics/<topic>/partitions/<partition>/state`."""
    return f"{BROKER_TOPICS}/{topic}/partitions/{partition}/state"


def partition_of_state(path: str) -> tuple[str, int] | None:
    """The topic and the partition whose state is at the path; None if no state is."""
    found = _STATE.fullmatch(path)
    return None if found is None else (found[1], int(found[2]))


def topic_config_path(topic: str) -> str:
    """`/config/topics/<topic>`: the settings that the topic overrides."""
    return f"{TOPIC_CONFIGS}/{topic}"


def members_path(group: str) -> str:
    """`/consumers/<group>/ids`: its children are the group's members."""
    return f"{CONSUMERS}/{group}/ids"


def member_path(group: str, consumer_id: str) -> str:
    """`/consumers/<group>/ids/<consumer id>`."""
    return f"{members_path(group)}/{consumer_id}"


def owners_path(group: str, topic: str) -> str:
    """`/consumers/<group>/owners/<topic>`."""
    return f"{CONSUMERS}/{group}/owners/{topic}"


def owner_path(group: str, topic: str, partition: int) -> str:
    """`/consumers/<group>/owners/<topic>/<partition>`; its data is a thread id."""
    return f"{owners_path(group, topic)}/{partition}"


def offset_path(group: str, topic: str, partition: int) -> str:
    """`/consumers/<group>/offsets/<topic>/<partition>`; its data is the next offset to read."""
    return f"{CONSUMERS}/{group}/offsets/{topic}/{partition}"
