"""Plans with real members: what they can ask for, and who is what."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import Members, Rules, rules_of
from rebalance_lab.history.events import Event, Kind, Layer
from rebalance_lab.subjects.zk_group.options import MemberOptions
from rebalance_lab.subjects.zk_group.real import MembersLists
from rebalance_lab.trials.plan import PlanError
from rebalance_lab.trials.scenario import make_plan


def test_mixed_members_are_ours_and_real_in_turn_and_the_seed_says_who_is_first() -> None:
    kinds = {}
    for seed in (1, 2):
        plan = make_plan("drill", world="processes", rules="mixed", seed=seed)
        assert plan.has_real_members
        kinds[seed] = [plan.rules_of(f"m{number}") for number in (1, 2, 3, 10)]
    assert kinds == {1: ["shipped", "real", "shipped", "real"], 2: ["real", "shipped", "real", "shipped"]}


def test_one_member_may_be_real_by_its_options() -> None:
    plan = make_plan("drill", world="processes", rules="mixed")
    spec = MemberOptions(rules="real").spec(plan, "m1", connect="here", events="")
    assert spec.rules == "real"
    assert MemberOptions().spec(plan, "m1", connect="here", events="").rules == "shipped"


@pytest.mark.parametrize("rules", ["real", "mixed"])
@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"world": "simulated"}, "--world processes"),
        ({"plant": "ignore-watch"}, "plant ignore-watch is a bug of our members"),
        ({"settings": {"streams": "2"}}, "streams=2"),
        ({"settings": {"brokers": "3"}}, "brokers=3"),
        ({"settings": {"ops": "counts"}}, "ops=all"),
        ({"settings": {"assignor": "ceil"}}, "range and roundrobin"),
    ],
)
def test_what_real_members_cannot_do_is_said_before_anything_starts(
    rules: str, more: Mapping[str, object], told: str
) -> None:
    with pytest.raises(PlanError, match=told):
        make_plan("zombie", rules=rules, **{"world": "processes", **more})  # type: ignore[arg-type]


def test_the_command_line_takes_rules_or_members() -> None:
    assert rules_of(Rules.shipped, Members.ours) == "shipped"
    assert rules_of(None, Members.ours) == "described"
    assert rules_of(None, Members.real) == "real"
    assert rules_of(None, Members.mixed) == "mixed"
    for rules in Rules:
        with pytest.raises(Failure, match=f"--rules {rules} has no effect on real members"):
            rules_of(rules, Members.mixed)


def test_a_list_of_members_is_as_old_as_its_last_change_that_the_server_had_seen() -> None:
    lists = MembersLists()

    def registry(kind: Kind, path: str, zxid: int, group: str | None = "g1") -> None:
        lists.feed(Event("zookeeper", zxid, zxid, Layer.REGISTRY, kind, group=group, zxid=zxid, detail={"path": path}))

    registry(Kind.CREATED, "/consumers/g1/ids", 3)
    registry(Kind.CREATED, "/consumers/g1/ids/g1_a", 4)
    registry(Kind.CREATED, "/consumers/g1/owners/t1/0", 5)
    registry(Kind.CREATED, "/consumers/g2/ids/g2_a", 6, "g2")
    registry(Kind.DELETED, "/consumers/g1/ids/g1_a", 8)
    registry(Kind.CREATED, "/brokers/ids/0", 9, None)
    assert [lists.zxid("g1", reached) for reached in (2, 3, 5, 7, 8, 20)] == [-1, 3, 4, 4, 8, 8]
    assert lists.zxid("g2", 20) == 6
    assert lists.zxid("g3", 20) == -1
