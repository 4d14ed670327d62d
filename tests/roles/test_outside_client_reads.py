"""A read of a client that others wrote counts once it has what is acknowledged, or after a while."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_lab.history.events import Kind
from rebalance_lab.roles.outside_client import STALE_US, OutsideClientSpec, _Client


def reads(*, acknowledged_end: int, ends_at: int, at_us: tuple[int, ...] = (0,)) -> tuple[bool, Kind, dict[str, Any]]:
    """Whether the last of some reads counts, which are done at these times, and how it is recorded."""
    times = iter(at_us)
    recorded: list[tuple[Kind, dict[str, Any]]] = []

    def emit(_layer: object, kind: Kind, *, detail: dict[str, Any], **_more: object) -> tuple[str, int]:
        recorded.append((kind, detail))
        return "c1", len(recorded)

    async def read() -> list[tuple[int, bytes]]:
        return [(each, b"%d" % each) for each in range(ends_at)]

    spec = OutsideClientSpec(
        actor="c1",
        host="h",
        events="",
        seed=1,
        connect="",
        session_timeout_ms=1,
        topic="t1",
        library="",
        duration_ms=1,
        pause_us=1,
        value_bytes=8,
        request_timeout_ms=1,
    )
    tasks = SimpleNamespace(flag=lambda _name: None, now_us=lambda: next(times))
    client = _Client(SimpleNamespace(tasks=tasks, recorder=SimpleNamespace(emit=emit)), spec)  # type: ignore[arg-type]
    client._acknowledged_end = acknowledged_end
    for _ in at_us:
        counts = asyncio.run(client._read(SimpleNamespace(read=read)))  # type: ignore[arg-type]
    return counts, *recorded[-1]


@pytest.mark.parametrize("ends_at", [5, 6])
def test_a_read_that_has_all_counts(ends_at: int) -> None:
    counts, kind, detail = reads(acknowledged_end=5, ends_at=ends_at)
    assert (counts, kind, len(detail["records"])) == (True, Kind.OK, ends_at)


@pytest.mark.parametrize("ends_at", [0, 4])
def test_one_of_a_leader_that_has_been_replaced_is_done_again(ends_at: int) -> None:
    counts, kind, detail = reads(acknowledged_end=5, ends_at=ends_at, at_us=(7, STALE_US + 6))
    assert (counts, kind) == (False, Kind.FAILED_OP)
    assert detail["error"] == f"the log ended at {ends_at}, and up to 5 all is acknowledged"


def test_what_is_still_missing_after_a_while_is_lost() -> None:
    counts, kind, detail = reads(acknowledged_end=5, ends_at=4, at_us=(7, STALE_US + 7))
    assert (counts, kind, len(detail["records"])) == (True, Kind.OK, 4)
