"""A release that leaves the last owned partition for later, for counterfeits of Z5a."""

from __future__ import annotations

from rebalance_lab.assignors import TopicPartition
from zkconsumer.claims import Claims
from zkconsumer.ownership import Ownership


async def all_but_the_last(claims: Claims, ownership: Ownership) -> None:
    """In the place of `Claims.release`; `left_over` gives what was left."""
    ownership.disbelieve()
    owned = [each for topic in ownership.topics for each in ownership.of(topic)]
    for each in owned[:-1]:
        await claims._delete(each)
    claims.left_over = owned[-1:]  # type: ignore[attr-defined]
    ownership.clear()


def left_over(claims: Claims) -> list[TopicPartition]:
    """What the release left, once."""
    found, claims.left_over = getattr(claims, "left_over", []), []  # type: ignore[attr-defined]
    return found
