"""What a member saw of its group, as a short text: equal where the members and the partitions are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256


def view_digest(members: Iterable[str], partitions: Mapping[str, Iterable[int]]) -> str:
    """16 hex digits of the ids of members and of each topic's partitions. Neither their order nor the kind of
    collection counts, so what a member reports (DECIDED) compares with what a check takes from the registry."""
    topics = sorted((topic, tuple(sorted(numbers))) for topic, numbers in partitions.items())
    return _digest(tuple(sorted(members)), tuple(topics))


@lru_cache(maxsize=64)  # members of one process mostly see the same
def _digest(members: tuple[str, ...], partitions: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    return sha256(repr((members, partitions)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
