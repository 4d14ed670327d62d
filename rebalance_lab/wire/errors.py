"""Kafka's general exception, under the name its users know."""

from __future__ import annotations


class KafkaException(Exception):
    """A payload that Kafka could not read. The text is Kafka's."""
