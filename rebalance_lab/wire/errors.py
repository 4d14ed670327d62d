"""Kafka's general exception, under the name its users know."""

from __future__ import annotations


class KafkaException(Exception):
    """A payload that Kafka could not read. The text is Kafka's."""


class InvalidFilter(KafkaException):
    """A topic filter that is not a regular expression (a RuntimeException in 0.8.2). The text is Kafka's."""


class UnsupportedFilter(KafkaException):
    """A topic filter that Kafka accepts and the lab cannot evaluate; the message says why."""
