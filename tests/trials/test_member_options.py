"""Members may differ from the plan, each in its own way."""

from __future__ import annotations

import pytest
from lab_stories import of_kind, played

from rebalance_lab.history.events import Kind
from rebalance_lab.subjects.zk_group.lab import AS_PLANNED, GroupLab, MemberOptions
from rebalance_lab.trials.scenario import make_plan
from zkconsumer.lab_settings import LabSettings


def spec(options: MemberOptions):
    return options.spec(make_plan("leave"), "m1", connect="z:2181", events="")


def test_left_out_is_as_planned() -> None:
    planned = spec(AS_PLANNED)
    assert (planned.rules, planned.assignor, planned.streams) == ("described", None, {"t1": 1})
    assert (planned.config.group_id, planned.config.group_given) == ("g1", True)
    assert planned.config.zookeeper_session_timeout_ms == planned.config.zookeeper_connection_timeout_ms == 2000
    assert planned.operations == "all"


def test_what_is_given_comes_first() -> None:
    given = MemberOptions(
        group="g2",
        rules="shipped",
        assignor="roundrobin",
        streams={"a": 2},
        consumer_id="mine",
        lab=LabSettings(keep_claims_on_conflict=True),
        fetcher_stop_ms=9,
    )
    made = spec(given)
    assert (made.rules, made.assignor, made.streams, made.fetcher_stop_ms) == ("shipped", "roundrobin", {"a": 2}, 9)
    config = made.config
    assert (config.group_id, config.consumer_id, config.rebalance_max_retries) == ("g2", "mine", 4)
    assert config.lab.switched_on == ("keep.claims.on.conflict",)


def test_no_group_is_no_setting() -> None:
    assert not spec(MemberOptions(group="")).config.group_given


def test_a_filter_has_no_topics() -> None:
    made = spec(MemberOptions(whitelist="t.*", filter_streams=3))
    assert (made.streams, made.whitelist, made.filter_streams) == ({}, "t.*", 3)


def test_two_subscriptions_are_refused() -> None:
    with pytest.raises(ValueError, match="by topics, or by a white list, or by a black list"):
        MemberOptions(streams={"a": 1}, blacklist="b")


def test_many_members_are_counted_not_recorded_one_by_one() -> None:
    plans = {
        ("auto", "100"): "all",
        ("auto", "101"): "counts",
        ("all", "101"): "all",
        ("counts", "1"): "counts",
    }
    for (ops, members), operations in plans.items():
        assert make_plan("leave", settings={"ops": ops, "members": members}).operations == operations


def test_a_filter_finds_its_topics() -> None:
    async def script(lab: GroupLab) -> None:
        lab.begin()
        await lab.prepare({"orders": 2, "audit": 1})
        await lab.start_member(MemberOptions(whitelist="or.*"))
        await lab.rest("joined")
        await lab.close()

    owned = {(event.topic, event.partition) for event in of_kind(played(script), Kind.OWNED)}
    assert owned == {("orders", 0), ("orders", 1)}


@pytest.mark.parametrize(("rules", "refused"), [("described", []), ("shipped", ["m2"])])
def test_a_member_without_a_group_is_taken_or_refused(rules: str, refused: list[str]) -> None:
    """Claim Z14."""

    async def script(lab: GroupLab) -> None:
        lab.begin()
        await lab.prepare()
        await lab.start_member()
        await lab.start_member(MemberOptions(group=""))
        await lab.rest("joined")
        await lab.close()

    events = played(script, rules=rules)
    assert [event.actor for event in of_kind(events, Kind.MEMBER_REFUSED)] == refused
    groups = {event.actor: event.group for event in of_kind(events, Kind.MEMBER_STARTED)}
    assert groups == {"m1": "g1"} if refused else {"m1": "g1", "m2": "default"}
