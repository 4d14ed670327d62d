"""What a member subscribes to: topics by name, or by a filter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.wire.registration import BLACK_LIST, STATIC, WHITE_LIST, Registration
from rebalance_lab.wire.topic_filter import compiled_filter, normal_filter
from zkconsumer.errors import FilterStreamsExistException, MessageStreamsExistException


@dataclass(frozen=True, slots=True)
class Static:
    """`createMessageStreams`: topic -> streams. An empty map is allowed: such a member owns nothing, but still makes
    all members rebalance."""

    streams: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class WhiteList:
    """`createMessageStreamsByFilter`: every topic whose whole name the regex matches.

    `streams`: for all of them together; thread i of every topic feeds stream i. Internal topics
    are left out where exclude.internal.topics says so. Raises InvalidFilter, UnsupportedFilter.
    """

    regex: str
    streams: int = 1

    def __post_init__(self) -> None:
        compiled_filter(self.regex)


@dataclass(frozen=True, slots=True)
class BlackList:
    """Every topic that the regex does not match; all else as with WhiteList."""

    regex: str
    streams: int = 1

    def __post_init__(self) -> None:
        compiled_filter(self.regex)


Wildcard = WhiteList | BlackList
Subscription = Static | Wildcard


def subscription_of(given: Subscription | Mapping[str, int] | None) -> Subscription:
    """A plain mapping is Static. Raises RuntimeError for None, as 0.8.2."""
    if given is None:
        raise RuntimeError("topicCountMap is null")
    return given if isinstance(given, Static | WhiteList | BlackList) else Static(given)


def registration_of(subscription: Subscription, timestamp_ms: int | None = None) -> Registration:
    """What the member registers; a filter is normalised."""
    match subscription:
        case Static(streams):
            return Registration(tuple(streams.items()), STATIC, timestamp_ms)
        case WhiteList(regex, count):
            return Registration(((normal_filter(regex), count),), WHITE_LIST, timestamp_ms)
        case BlackList(regex, count):
            return Registration(((normal_filter(regex), count),), BLACK_LIST, timestamp_ms)


def exists_already(subscription: Subscription) -> Exception:
    """The error of a second create; both kinds share one flag, which is set before any work."""
    if isinstance(subscription, Static):
        return MessageStreamsExistException()
    return FilterStreamsExistException()
