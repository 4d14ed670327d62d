"""Names of a broker's files and folders (`LogFileUtils`, `LocalLog`, `LogManager`, Kafka 3.9.1)."""

from __future__ import annotations

import re

from rebalance_lab.assignors import TopicPartition

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
PRODUCER_SNAPSHOT = ".snapshot"
DELETED = ".deleted"

TOPIC_CHARACTERS = "ASCII letters, digits, '.', '_' and '-'"
MAX_TOPIC_LENGTH = 249

_TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_LENGTH}}}")
_PARTITION = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]{0,9})")
_DELETED_FOLDER = re.compile(r"\S+-\d+\.[0-9a-f]{32}-delete")
_SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.snapshot)")

_MAX_NAME_LENGTH = 255
_MAX_PARTITION = 2**31 - 1


class InvalidTopic(ValueError):
    """A topic's name that Kafka does not allow (`org.apache.kafka.common.internals.Topic`)."""


def check_topic(topic: str) -> None:
    """Raises InvalidTopic."""
    if topic in (".", ".."):
        raise InvalidTopic(f"a topic cannot be named {topic!r}")
    if not _TOPIC.fullmatch(topic):
        shown = repr(topic) if len(topic) <= MAX_TOPIC_LENGTH else f"of {len(topic)} characters"
        raise InvalidTopic(
            f"topic name {shown}: give 1 to {MAX_TOPIC_LENGTH} characters, which may be {TOPIC_CHARACTERS}"
        )


def folder_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def partition_of(folder: str) -> TopicPartition | None:
    """The partition whose log is in a folder of this name; None for a name that no partition's folder has."""
    match = _PARTITION.fullmatch(folder)
    if match is None or int(match["partition"]) > _MAX_PARTITION:
        return None
    try:
        check_topic(match["topic"])
    except InvalidTopic:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))


def deleted_folder(partition: TopicPartition, unique: str) -> str:
    """The name of a deleted partition's folder. `unique`: 32 hexadecimal digits. A long topic is cut off, so that
    the name stays a possible one."""
    suffix = f"-{partition.partition}.{unique}-delete"
    return partition.topic[: _MAX_NAME_LENGTH - len(suffix)] + suffix


def is_deleted_folder(folder: str) -> bool:
    return _DELETED_FOLDER.fullmatch(folder) is not None


def segment_file(offset: int, suffix: str) -> str:
    """`suffix`: LOG, OFFSET_INDEX, TIME_INDEX or PRODUCER_SNAPSHOT."""
    return f"{offset:020d}{suffix}"


def segment_file_parts(name: str) -> tuple[int, str] | None:
    """The offset and the suffix in a file's name; None for other files."""
    match = _SEGMENT_FILE.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])
