"""The registration of a consumer, `/consumers/<group>/ids/<consumer id>`
(`kafka.consumer.TopicCount`, 0.8.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.json_text import encode, escaped, parse
from rebalance_lab.wire.topic_filter import INTERNAL_TOPICS, matching, normal_filter

STATIC = "static"
WHITE_LIST = "white_list"
BLACK_LIST = "black_list"

VERSION = 1


@dataclass(frozen=True, slots=True)
class Registration:
    """What one member subscribes to.

    `subscription`: (topic, streams) pairs in the order they are written; for a wildcard one
    pair of regex and streams. `timestamp_ms`: epoch ms, None if the writer gave none; no
    consumer reads it.
    """

    subscription: tuple[tuple[str, int], ...]
    pattern: str = STATIC
    timestamp_ms: int | None = None

    @property
    def wildcard(self) -> bool:
        """An empty map or an unknown pattern counts as static, as in 0.8.2."""
        return bool(self.subscription) and self.pattern in (WHITE_LIST, BLACK_LIST)

    def streams(self, topics: Iterable[str] = (), *, exclude_internal: bool = True) -> dict[str, int]:
        """topic -> streams. `topics`: all that exist, which only a wildcard needs.

        The filter is matched against whole names; `exclude_internal` is the setting of the member
        that evaluates it, not of the one that wrote it. Raises InvalidFilter with the original's
        text, and UnsupportedFilter.
        """
        if not self.wildcard:
            return dict(self.subscription)
        text, count = self.subscription[0]
        wanted = self.pattern == WHITE_LIST
        hidden = INTERNAL_TOPICS if exclude_internal else ()
        offered = [each for each in sorted(topics) if each not in hidden]
        matched = matching(text, offered)
        return {each: count for each in offered if (each in matched) == wanted}


def registration_payload(registration: Registration) -> bytes:
    """The payload as 0.8.2 writes it: four fields in this order, no blanks. Topics are not
    escaped; a wildcard's filter is, and stands there as `normal_filter` has it.

    Raises ValueError for a registration without a timestamp.
    """
    if registration.timestamp_ms is None:
        raise ValueError("cannot write a registration without a timestamp: give epoch milliseconds")
    subscription = dict(registration.subscription)
    if registration.wildcard:
        subscription = {escaped(normal_filter(text)): count for text, count in registration.subscription}
    return encode(
        {
            "version": VERSION,
            "subscription": subscription,
            "pattern": registration.pattern,
            "timestamp": str(registration.timestamp_ms),
        }
    ).encode()


@lru_cache(maxsize=1 << 15)  # each member reads all others, in each attempt
def read_registration(data: bytes) -> Registration:
    """Read a registration of 0.8.0 to 0.8.2: fields in any order; version and timestamp may
    be missing. Raises KafkaException with the original's text."""
    text = data.decode("utf-8", "replace")
    fields = parse(text)
    if not isinstance(fields, dict):
        raise KafkaException(f"error constructing TopicCount : {text}")
    pattern = fields.get("pattern")
    subscription = fields.get("subscription")
    if not isinstance(pattern, str) or not isinstance(subscription, dict):
        raise KafkaException(f"error constructing TopicCount : {text}")
    pairs = tuple(subscription.items())
    if any(not isinstance(count, int) or isinstance(count, bool) for _, count in pairs):
        raise KafkaException(f"error constructing TopicCount : {text}")
    return Registration(pairs, pattern, _timestamp(fields.get("timestamp")))


def _timestamp(value: object) -> int | None:
    """Epoch ms; None for anything else than digits, because no reader uses it."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None
