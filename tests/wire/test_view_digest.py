"""The digest by which views of a group are compared."""

from __future__ import annotations

import pytest

from rebalance_lab.wire.view_digest import view_digest

MEMBERS = ("g_a", "g_b")
PARTITIONS = {"t": (0, 1), "u": (0,)}


@pytest.mark.parametrize(
    ("members", "partitions"),
    [
        (("g_a",), PARTITIONS),
        (MEMBERS, {"t": (0,), "u": (0,)}),
        (MEMBERS, {"t": (0, 1), "v": (0,)}),
        (MEMBERS, {"t": (0, 1)}),
        (("g_a', 'g_b",), PARTITIONS),
    ],
)
def test_other_views_have_other_digests(members: tuple[str, ...], partitions: dict[str, tuple[int, ...]]) -> None:
    digest = view_digest(MEMBERS, PARTITIONS)
    assert len(digest) == 16 and int(digest, 16) >= 0
    assert view_digest(members, partitions) != digest


def test_neither_order_nor_the_kind_of_collection_counts() -> None:
    assert view_digest(["g_b", "g_a"], {"u": [0], "t": [1, 0]}) == view_digest(MEMBERS, PARTITIONS)


def test_recorded_digests_stay_what_they_are() -> None:
    """Histories hold them (DECIDED, `view`)."""
    assert view_digest(MEMBERS, PARTITIONS) == "bf36b627f162ece7"
