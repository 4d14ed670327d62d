"""One event, one line: what it says of each kind of event, and that it is one line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rebalance_lab.cli.events import Lines, printable, shortener
from rebalance_lab.history.events import LAYER_OF, Event, Kind

M1, M2 = "g1_host-m1-1443744000027-83259637", "g1_host-m2-1443744000094-b8b8d0a7"


def event(kind: Kind, actor: str = "m1", n: int = 7, at_us: int = 1_002_500, **fields: object) -> Event:
    return Event(actor=actor, n=n, at_us=at_us, layer=LAYER_OF[kind], kind=kind, **fields)  # type: ignore[arg-type]


HISTORY = (
    event(Kind.TRIAL_BEGAN, "runner", 0, 1_000_000, detail={"scenario": "zombie"}),
    event(Kind.MEMBER_STARTED, "m1", 0, member=M1),
    event(Kind.MEMBER_STARTED, "m2", 0, member=M2),
)


def line(shown: Event, history: Sequence[Event] = HISTORY) -> str:
    return Lines.of(history, [shown]).line(shown)


PATH = "/consumers/g1/owners/t1/0"


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        (
            event(Kind.OWNED, member=M1, topic="t1", partition=0, cause=("m1", 6)),
            "   2.500 m1#7 belief   owned t1/0 <- m1#6",
        ),
        (
            event(Kind.CREATED, "zookeeper", member=M2, topic="t1", partition=0, zxid=18,
                  detail={"path": PATH, "data": f"{M2}-0", "ephemeral": True, "cxid": 3}),
            f"   2.500 zookeeper#7 registry created {PATH} of {{m2}} zxid 0x12",
        ),
        (
            event(Kind.CREATED, "zookeeper", member=M2, zxid=18,
                  detail={"path": f"/consumers/g1/ids/{M2}", "ephemeral": False}),
            "   2.500 zookeeper#7 registry created /consumers/g1/ids/{m2} zxid 0x12",
        ),
        (
            event(Kind.CREATED, "zookeeper", member=M2, topic="t1", partition=0, zxid=18,
                  detail={"path": PATH, "ephemeral": False}),
            f"   2.500 zookeeper#7 registry created {PATH} of {{m2}}, persistent zxid 0x12",
        ),
        (
            event(Kind.FAILED, "zookeeper", zxid=4, detail={"code": -110, "cxid": 3}),
            "   2.500 zookeeper#7 registry failed NodeExists zxid 0x4",
        ),
        (
            event(Kind.FAULT_BIT, "runner", detail={"fault": "pause", "target": "m1", "proof": "paused", "of": 6}),
            "!! 2.500 runner#7 fault    fault-bit pause m1 paused",
        ),
        (event(Kind.PHASE, "runner", detail={"name": "joining"}), "== 2.500 runner#7 op       phase joining"),
        (
            event(Kind.DECIDED, detail={"members": 2, "view": "ab", "wants": [["t1", 0], ["t1", 1]]}),
            "   2.500 m1#7 op       decided members=2 view=ab wants=t1/0,t1/1",
        ),
        (
            event(Kind.OBSERVED, detail={"path": "/ids", "children": [str(n) for n in range(12)]}),
            "   2.500 m1#7 op       observed /ids children=0,1,2,3,4,5,6,7,… (12)",
        ),
        (
            event(Kind.OBSERVED, detail={
                "path": "/o", "children": ["0"], "owners": {"0": f"{M2}-0"}, "sessions": {"0": "0x2"}, "owners_zxid": 9
            }),
            "   2.500 m1#7 op       observed /o owners=0:{m2}-0",
        ),
        (
            event(Kind.SESSION_CLOSED, "zookeeper", session="0x2", zxid=4, detail={"ephemerals": 2, "sampled": True}),
            "   2.500 zookeeper#7 registry session-closed sampled ephemerals=2 0x2 zxid 0x4",
        ),
        (
            event(Kind.SESSION_CLOSED, "zookeeper", session="0x2", zxid=4, detail={"ephemerals": 2, "sampled": False}),
            "   2.500 zookeeper#7 registry session-closed ephemerals=2 0x2 zxid 0x4",
        ),
        (
            event(Kind.INVOKED, detail={"op": "multi_read", "path": "", "parts": [
                ["get", f"/consumers/g1/ids/{M1}"], ["get", f"/consumers/g1/ids/{M2}"], ["children", "/brokers/topics"]
            ]}),
            "   2.500 m1#7 op       invoked multi_read get /consumers/g1/ids/{m1},{m2} children /brokers/topics",
        ),
        (event(Kind.EXPIRED, session="0x15"), "   2.500 m1#7 op       expired 0x15"),
        (
            event(Kind.WARNED, detail={"message": "line one\nline two\x1b[31m"}),
            "   2.500 m1#7 op       warned line one\\nline two\\x1b[31m",
        ),
    ],
)  # fmt: skip
def test_what_a_line_says(shown: Event, says: str) -> None:
    assert line(shown) == says


def test_an_id_that_two_actors_share_is_not_shortened() -> None:
    both = (*HISTORY, event(Kind.MEMBER_STARTED, "m3", 0, member=M2))
    shorten = shortener(both)
    assert shorten(f"/ids/{M1} {M2}") == f"/ids/{{m1}} {M2}"
    assert shortener(())(M1) == M1


def test_the_chosen_event_is_marked() -> None:
    fault = event(Kind.FAULT_BEGAN, "runner", detail={"fault": "kill", "target": "m1"})
    lines = Lines.of(HISTORY, [fault])
    assert lines.line(fault, fault.id).startswith(">> ")
    assert lines.line(fault, ("runner", 1)).startswith("!! ")


def test_columns_are_aligned_and_long_ones_push() -> None:
    rows = [event(Kind.OWNED, "m1"), event(Kind.NOTIFICATION_HANDLED, "runner", at_us=11_000_000)]
    lines = Lines.of(HISTORY, rows)
    assert [lines.line(row) for row in rows] == [
        "       2.500 m1#7     belief   owned",
        "   10000.000 runner#7 op       notification-handled",
    ]


def test_every_kind_has_a_line() -> None:
    for kind in Kind:
        shown = event(kind, detail={"path": "/a", "nested": {"a": [1, None]}})
        assert str(kind) in line(shown)
        assert "nested=a:1,null" in line(shown)


def test_printable_leaves_what_is_printable() -> None:
    assert printable("über µs …") == "über µs …"
    assert printable("a\tb\x00") == "a\\tb\\x00"
