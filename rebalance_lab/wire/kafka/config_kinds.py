"""Numbers in requests about settings (`ConfigResource`, `DescribeConfigsResponse`, `AlterConfigOp`, Kafka 3.9.1)."""

from __future__ import annotations

from enum import IntEnum


class ResourceType(IntEnum):
    """By its number in requests (`ConfigResource.Type`)."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from, by its number in DescribeConfigs (`DescribeConfigsResponse.ConfigSource`)."""

    TOPIC_CONFIG = 1
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class Operation(IntEnum):
    """By its number (`AlterConfigOp.OpType`). The last two are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
