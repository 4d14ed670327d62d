"""Herd costs: against an oracle on random histories, and the formulas against the facts' own numbers."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import RandomTrials
from stored_trials import trial

from rebalance_lab.analysis.frames import rows_of
from rebalance_lab.analysis.tables.herd_costs import HERD_COSTS, herd_costs
from rebalance_lab.analysis.trialwise.herd_costs import Expected, expected
from rebalance_lab.analysis.trialwise.herd_costs import herd_costs as costs_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.history.files import History

READS = {"get": 1, "children": 1, "exists": 1, "multi_read": 3}
WRITES = {"create": 1, "set": 1, "delete": 1, "multi": 1}


def oracle(history: History) -> list[dict[str, Any]]:
    """What was measured: each announced change, up to the rest, phase or end that follows it."""
    events, rows = history.events, []
    for start, phase in enumerate(events):
        if phase.kind != "phase" or phase.of("change") is None:
            continue
        ends = [n for n in range(start + 1, len(events)) if events[n].kind in ("rest-reached", "rest-missed", "phase")]
        stop = ends[0] if ends else len(events) - 1
        here = events[start + 1 : stop + 1]
        group = phase.group or ""
        started = [event for event in events if event.kind == "member-started" and event.group is not None]
        of = {event.actor: event.group for event in reversed(started)}  # the first counts
        asked = [event for event in here if of.get(event.actor) == group]
        many = [event for event in asked if event.kind == "operations" and event.of("counts")]
        invoked = [str(event.of("op")) for event in asked if event.kind == "invoked"]
        rows.append(
            {
                "group": group,
                "change": phase.of("change"),
                "before": phase.of("members"),
                "begin_us": phase.at_us,
                "end_us": events[stop].at_us,
                "rested": bool(ends) and events[stop].kind == "rest-reached",
                "reads": sum(READS.get(op, 0) for op in invoked) + 10 * len(many),
                "writes": sum(WRITES.get(op, 0) for op in invoked) + len(many),
                "notifications": sum(event.kind == "notification-queued" and event.group == group for event in here),
                "rebalances": sum(event.kind == "rebalance-began" and event.group == group for event in here),
            }
        )
    return rows


def test_the_table_says_what_its_oracle_says(random_trials: RandomTrials) -> None:
    table = herd_costs(random_trials.results)
    assert table.schema == HERD_COSTS
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in random_trials.histories}
    for row in rows_of(table):
        found[row["trial"]].append(row)
    seen = 0
    for name, history in random_trials.histories.items():
        wanted = oracle(history)
        rows = sorted(found[name], key=lambda row: row["begin_us"])
        assert [row["members"] - row["before"] for row in rows] == [GROWS[row["change"]] for row in rows]
        got = [{key: row[key] for key in wanted[0]} for row in rows] if wanted else rows
        assert got == wanted, name
        seen += len(wanted)
    assert seen > 200
    for name in ("reads", "writes", "notifications", "rebalances", "rested"):
        assert sum(row[name] > 0 for rows in found.values() for row in rows) > 10, name


GROWS = {"join": 1, "leave": -1, "broker": 0}


@pytest.mark.parametrize(
    ("change", "before", "rules", "cluster", "cost"),
    [
        # Facts 8.1: a join to 20 (C = 20 after it), B = 5, T = 10, P = 200: 1278, and 2 + T of the joiner's own.
        ("join", 19, "shipped", (5, 10, 200), Expected(20, 19, 20, 1278 + 12, 600)),
        # C = 100, same rest: 13,598.
        ("join", 99, "shipped", (5, 10, 200), Expected(100, 99, 100, 13_598 + 12, 600)),
        # 8.2: n - 1 of each; two members read 3 + 2 + 1 + 7 each, 6 partitions, 2 for each notification.
        ("crash", 3, "shipped", (1, 1, 6), Expected(2, 2, 2, 2 * 13 + 6 + 4, 18)),
        ("leave", 3, "shipped", (1, 1, 6), Expected(2, 2, 2, 36, 18)),
        ("topic", 3, "shipped", (1, 1, 6), Expected(3, 3, 3, 3 * 14 + 6 + 6, 18)),
        # Nobody watches the list of brokers as shipped; as described everybody does.
        ("broker", 3, "shipped", (1, 1, 6), Expected(3, 0, 0, 0, 0)),
        ("broker", 3, "described", (1, 1, 6), Expected(3, 3, 3, 3 * 14 + 6 + 6, 18)),
        ("leave", 1, "shipped", (1, 1, 6), Expected(0, 0, 0, 0, 18)),
        ("join", 0, "shipped", (1, 1, 6), Expected(1, 0, 1, 12 + 6 + 3, 18)),
        # Ten members, four of them without a partition: these do not read 1 + B to find leaders.
        ("join", 9, "shipped", (1, 1, 6), Expected(10, 9, 10, 10 * 21 + 6 + 18 + 3 - 4 * 2, 18)),
    ],
)
def test_the_formulas_of_the_facts(
    change: str, before: int, rules: str, cluster: tuple[int, int, int], cost: Expected
) -> None:
    brokers, topics, partitions = cluster
    assert expected(change, before, rules=rules, brokers=brokers, topics=topics, partitions=partitions) == cost


def test_the_formula_is_asked_with_what_the_registry_holds() -> None:
    """Two brokers and one that left; a topic that grew; another that nobody subscribes to."""
    znodes = [
        (Kind.CREATED, {"path": "/brokers/ids/0"}, None),
        (Kind.CREATED, {"path": "/brokers/ids/1"}, None),
        (Kind.CREATED, {"path": "/brokers/ids/7"}, None),
        (Kind.DELETED, {"path": "/brokers/ids/7"}, None),
        (Kind.CREATED, {"path": "/brokers/topics/t", "data": '{"partitions":{"0":[0]}}'}, "t"),
        (Kind.CHANGED, {"path": "/brokers/topics/t", "data": '{"partitions":{"0":[0],"1":[0],"2":[0]}}'}, "t"),
        (Kind.CREATED, {"path": "/brokers/topics/u", "data": '{"partitions":{"0":[0]}}'}, "u"),
    ]
    events = [
        Event("zookeeper", n, n, Layer.REGISTRY, kind, topic=topic, zxid=n, detail=detail)
        for n, (kind, detail, topic) in enumerate(znodes)
    ]
    told = [
        (Kind.MEMBER_STARTED, "m1", {"streams": {"t": 1}}),
        (Kind.PHASE, "runner", {"name": "join", "change": "join", "members": 1}),
        (Kind.REBALANCE_BEGAN, "m1", {}),
        (Kind.INVOKED, "m1", {"op": "get", "path": "/p"}),
        (Kind.INVOKED, "runner", {"op": "get", "path": "/p"}),
        (Kind.REST_REACHED, "runner", {"phase": "joined"}),
    ]
    events += [
        Event(actor, n, 100 + n, Layer.OP, kind, group="g", detail=detail)
        for n, (kind, actor, detail) in enumerate(told)
    ]
    (cost,) = costs_of(History(trial("t"), tuple(events)))
    assert (cost.before, cost.members, cost.rested, cost.begin_us, cost.end_us) == (1, 2, True, 101, 105)
    assert (cost.reads, cost.writes, cost.notifications, cost.rebalances) == (1, 0, 0, 1)
    formula = expected("join", 1, rules="described", brokers=2, topics=1, partitions=3)
    assert cost.expected_reads == formula.reads == 2 * (6 + 2 + 1 + 7) + 3 + 2 + 3
    assert (cost.expected_notifications, cost.expected_rebalances, cost.most_writes) == (1, 2, 9)
