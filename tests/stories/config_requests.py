"""Requests that set and read the settings of topics and brokers, most of one topic `t`, for tests of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_stage import BrokerStage

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages import alter_configs as full
from rebalance_lab.wire.kafka.messages import incremental_alter_configs as incremental
from rebalance_lab.wire.kafka.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from rebalance_lab.wire.kafka.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

E = ErrorCode
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_SOURCE, STATIC, DEFAULT = 1, 4, 5


async def create(stage: BrokerStage, **config: str) -> Any:
    """Topic `t`; in names of settings an underscore stands for a dot."""
    configs = tuple(CreatableTopicConfig(name=_name(each), value=value) for each, value in config.items())
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, assignments=(), configs=configs)
    return (await stage.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 6)).topics[0]


def _name(each: str) -> str:
    return each.replace("_", ".")


def replace_all(config: Mapping[str, str | None], *, name: str = "t", kind: int = TOPIC) -> full.AlterConfigsRequest:
    configs = tuple(full.AlterableConfig(name=each, value=value) for each, value in config.items())
    resource = full.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return full.AlterConfigsRequest(resources=(resource,), validate_only=False)


def change(
    *changes: tuple[str, int, str | None], name: str = "t", kind: int = TOPIC, validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    configs = tuple(
        incremental.AlterableConfig(name=each, config_operation=operation, value=value)
        for each, operation, value in changes
    )
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    return incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)


async def changed(stage: BrokerStage, request: Any, version: int = 1) -> tuple[ErrorCode, str | None]:
    (response,) = (await stage.ask(request, version)).responses
    await stage.settle()
    return E(response.error_code), response.error_message


async def described(
    stage: BrokerStage, name: str = "t", *keys: str, kind: int = TOPIC, version: int = 4, synonyms: bool = False
) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=synonyms)
    return (await stage.ask(request, version)).results[0]


def log_config(stage: BrokerStage) -> LogConfig:
    return stage.parts.replicas.led(TopicPartition("t", 0)).log.config


async def data(stage: BrokerStage, path: str) -> bytes:
    return (await stage.zookeeper.ask(lambda session: session.get(path))).value.data


async def notifications(stage: BrokerStage) -> list[str]:
    names = (await stage.zookeeper.ask(lambda session: session.children("/config/changes"))).value.names
    return sorted(names)
