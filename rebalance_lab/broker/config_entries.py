"""Settings as answers show them: each with its value and its origin (`kafka.server.ConfigHelper`, Kafka 3.9.1)."""

from __future__ import annotations

from collections.abc import Mapping

from rebalance_lab.broker.calls import Parts
from rebalance_lab.broker.settings import BROKER_SETTINGS, TOPIC_SETTINGS, Setting, text_of
from rebalance_lab.wire.kafka.config_kinds import ConfigSource
from rebalance_lab.wire.kafka.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

Entries = list[DescribeConfigsResourceResult]


def topic_entries(parts: Parts, overrides: Mapping[str, str]) -> Entries:
    """All settings of a topic. `overrides`: those of its own, which have been checked."""
    return [_of_topic(parts, each, overrides) for each in TOPIC_SETTINGS.values()]


def broker_entries(parts: Parts) -> Entries:
    """All settings of this broker."""
    return [_of_broker(parts, name) for name in BROKER_SETTINGS]


def _of_topic(parts: Parts, setting: Setting, overrides: Mapping[str, str]) -> DescribeConfigsResourceResult:
    synonyms = []
    if setting.name in overrides:
        value = text_of(setting.read(overrides[setting.name]))
        synonyms.append(DescribeConfigsSynonym(name=setting.name, value=value, source=ConfigSource.TOPIC_CONFIG))
    if setting.server is not None:
        synonyms += _synonyms(parts, setting.server)
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=synonyms[0].value if synonyms else text_of(setting.default),
        read_only=False,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=False,
        synonyms=tuple(synonyms),
        config_type=setting.kind,
        documentation=None,
    )


def _of_broker(parts: Parts, name: str) -> DescribeConfigsResourceResult:
    synonyms = _synonyms(parts, name)
    return DescribeConfigsResourceResult(
        name=name,
        value=text_of(parts.settings[name]),
        read_only=True,
        config_source=synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG,
        is_sensitive=False,
        synonyms=tuple(synonyms),
        config_type=BROKER_SETTINGS[name].kind,
        documentation=None,
    )


def _synonyms(parts: Parts, name: str) -> list[DescribeConfigsSynonym]:
    """Of a broker's setting: what it was started with, and the default."""
    value, default = parts.settings[name], BROKER_SETTINGS[name].default
    found = []
    if value is not None and value != default:
        found.append(DescribeConfigsSynonym(name=name, value=text_of(value), source=ConfigSource.STATIC_BROKER_CONFIG))
    if default is not None:
        found.append(DescribeConfigsSynonym(name=name, value=text_of(default), source=ConfigSource.DEFAULT_CONFIG))
    return found
