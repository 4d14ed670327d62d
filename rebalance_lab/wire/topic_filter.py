"""Topic filters of 0.8.2 (`kafka.consumer.TopicFilter`): which topics a wildcard takes."""

from __future__ import annotations

import time
from collections.abc import Iterable

import regex

from rebalance_lab.wire.errors import InvalidFilter, UnsupportedFilter
from rebalance_lab.wire.java_regex import InvalidPattern, UnknownConstruct, java_pattern

#: The only internal topic of 0.8.2.
INTERNAL_TOPICS = ("__consumer_offsets",)

#: What Java's `trim` takes off: everything up to the blank.
_TRIMMED = "".join(map(chr, range(0x21)))

_QUOTES = "\"'"

#: Processor time for one filter and all topics. Some patterns, such as `(a|a)*[bc]`, would take centuries.
MATCHING_LIMIT_S = 1.0


def normal_filter(raw: str) -> str:
    """The text as Kafka uses it: trimmed, commas are `|`, blanks removed, quotes at both ends
    taken off (property files may bring them)."""
    return raw.strip(_TRIMMED).replace(",", "|").replace(" ", "").strip(_QUOTES)


def matching(raw: str, topics: Iterable[str]) -> set[str]:
    """The topics whose whole name the filter matches. Raises InvalidFilter, and UnsupportedFilter, also for a filter
    that takes too long."""
    pattern = compiled_filter(raw)
    give_up_s = time.process_time() + MATCHING_LIMIT_S
    found = set()
    for each in topics:
        try:
            if pattern.fullmatch(each, timeout=max(0.0, give_up_s - time.process_time())):
                found.add(each)
        except TimeoutError:
            raise UnsupportedFilter(
                f"the topic filter {normal_filter(raw)} was not evaluated within {MATCHING_LIMIT_S:g} s (at topic "
                f"{each}); write it without repetitions within repetitions"
            ) from None
    return found


def compiled_filter(raw: str) -> regex.Pattern[str]:
    """The pattern to match whole names with. Raises InvalidFilter with Kafka's text, and
    UnsupportedFilter for what Java knows and the lab does not (`wire.java_regex`)."""
    text = normal_filter(raw)
    try:
        return java_pattern(text)
    except InvalidPattern:
        raise InvalidFilter(f"{text} is an invalid regex.") from None
    except UnknownConstruct as unknown:
        raise UnsupportedFilter(
            f"the topic filter {text} uses {unknown}, which Java's regular expressions know and the lab's do not; "
            "write it in another way"
        ) from None
