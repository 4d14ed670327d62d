"""A group, and what all its members together take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from rebalance_lab.assignors import AssignmentContext, TopicPartition, by_name
from rebalance_lab.wire.registration import Registration
from zkconsumer.contexts import contexts

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "assignors_0_8.json").read_text(encoding="utf-8")
)["cases"]

#: Ids whose order differs between Java and Python, and between numbers and texts.
consumer_ids = st.text(alphabet="xyZ-1\U0001f600\uffee", min_size=1, max_size=4)


def views(members: list[dict[str, Any]], topics: dict[str, int]) -> list[AssignmentContext]:
    """What each member sees. `members`: consumer_id, topics (name or regex -> streams), and
    pattern where it is not static; `topics`: name -> partitions."""
    registrations = {
        each["consumer_id"]: Registration(tuple(each["topics"].items()), each.get("pattern", "static"))
        for each in members
    }
    return contexts("g1", registrations, topics)


def dealt(assignor: str, members: list[dict[str, Any]], topics: dict[str, int]) -> list[tuple[TopicPartition, str]]:
    """The union of what all members take."""
    return sorted(owner for view in views(members, topics) for owner in by_name(assignor)(view).owners)
