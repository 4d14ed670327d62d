"""Histories that leave open what happened: every check that finds nothing is unknown, or every check is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from counterfeit import trial
from counterfeit_forging import decisions, without
from counterfeit_neighbours import keeps_one_in_a_pool, sleepers
from counterfeit_zombies import late
from effect_overlap_other_period import false as other_period
from non_convergence_registers_anew import false as registers_anew

from rebalance_lab.checks import CHECKS, Outcome, judge
from rebalance_lab.checks.completeness import unknown_causes
from rebalance_lab.checks.disturbances import doubted
from rebalance_lab.history.events import Kind
from rebalance_lab.history.files import History
from rebalance_lab.wire.paths import BROKER_IDS
from rebalance_lab.world.ports import Environment
from zkconsumer.member import Member
from zkconsumer.rebalance import Rebalancer
from zkconsumer.watcher import Watcher


def as_control(seed: int) -> History:
    """A crash that calls itself a control."""
    history = trial("crash", seed)
    return History(msgspec.structs.replace(history.trial, control=True), history.events)


def never_rebalances(seed: int) -> History:
    """Z6, Z7a: the fourth member registers, sets its watches, and never rebalances. The runner waits for that, and
    gives the trial up."""
    synced = Rebalancer.synced

    async def unless_fourth(self: Rebalancer, by: str) -> None:
        if "host-m4" not in self._settings.consumer_id:
            await synced(self, by)

    with patch.object(Rebalancer, "synced", unless_fourth):
        return trial("walkthrough", seed)


def registry_cut_short(seed: int) -> History:
    """The log of an epoch of the registry has lost its end. The next transaction is the first of the new epoch,
    so there is no gap."""
    history = trial("servers", seed)
    epochs: dict[int, list[tuple[str, int]]] = {}
    for event in history.events:
        if event.actor == "zookeeper":
            epochs.setdefault((event.zxid or 0) >> 32, []).append(event.id)
    assert len(epochs) == 2
    lost = epochs[min(epochs)][-6:]
    return without(history, lambda event: event.id in lost)


def member_lost(seed: int) -> History:
    """All that one member recorded is lost: what it did in another order than the others, nobody can tell. Its id and
    its owner znodes stand in the registry's log."""
    return without(trial("walkthrough", seed), lambda event: event.actor == "m1")


def rest_reported(seed: int) -> History:
    """A group that never comes to rest (the counterfeit `non_convergence_registers_anew`). Where the runner missed
    a rest, it reports one."""
    history = registers_anew(seed)
    events = (
        msgspec.structs.replace(event, kind=Kind.REST_REACHED) if event.kind is Kind.REST_MISSED else event
        for event in history.events
    )
    return History(history.trial, tuple(events))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("forged", [as_control, never_rebalances, registry_cut_short, member_lost])
def test_nothing_is_clean(forged: object, seed: int) -> None:
    history = forged(seed)  # type: ignore[operator]
    assert unknown_causes(history) != []
    assert [name for name, found in judge(history).items() if found.outcome is Outcome.CLEAN] == []


def _of_ids(path: str) -> bool:
    return path.startswith("/consumers/") and path.endswith("/ids")


@pytest.mark.parametrize(
    "forged",
    [
        sleepers("herd", ("m5", "m6", "m7", "m8"), lambda _path: True, members="8", partitions="4", together="false"),
        sleepers("herd", ("m3", "m4"), lambda path: path == BROKER_IDS, members="4", together="false"),
        sleepers("group-scope", ("m2",), _of_ids),
        keeps_one_in_a_pool,
    ],
    ids=["Z7a", "Z7b", "Z15a", "Z5a"],
)
def test_nothing_is_clean_where_znodes_are_in_the_session_of_another(forged: object) -> None:
    """Z7a, Z7b, Z15a: members that do not watch. Z5a: one that does not give up all. What is looked at is known for a
    member's by its session."""
    for seed in range(3):
        history = forged(seed)  # type: ignore[operator]
        assert [name for name, found in judge(history).items() if found.outcome is Outcome.CLEAN] == []


@pytest.mark.parametrize(("forged", "name"), [(other_period, "effect_overlap"), (rest_reported, "non_convergence")])
def test_a_history_that_contradicts_itself_shows_nothing(forged: object, name: str) -> None:
    """Neither an anomaly nor its absence: the same forgery may hide an anomaly or make one."""
    history = forged(0)  # type: ignore[operator]
    assert doubted(history, {name: CHECKS[name].judge(history)})[name].outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_where_nothing_is_given_up_the_order_is_not_tested(seed: int) -> None:
    """Members rebalance when they come, and never again."""
    with patch.object(Watcher, "_trigger", lambda _watcher, _path: None):
        finding = CHECKS["order_in_rebalance"].judge(trial("walkthrough", seed))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.why.startswith("no attempt both gave up a partition and claimed one, although ")


@pytest.mark.parametrize("seed", range(3))
def test_members_of_one_host_may_be_in_its_group(seed: int) -> None:
    """A member that names no group joins one named after its host, and all run on one host."""
    honest = Member.__init__

    def on_one_host(member: Member, environment: Environment, *rest: Any, **more: Any) -> None:
        honest(member, replace(environment, host="host"), *rest, **more)

    with patch.object(Member, "__init__", on_one_host):
        finding = CHECKS["default_group"].judge(trial("group-scope", seed, plant="group-of-its-own"))
    assert finding.outcome is Outcome.UNKNOWN
    why = "no host but host host is known for the members that named no group: the group may be named after their host"
    assert finding.why == why


@pytest.mark.parametrize("scenario", ["crash", "servers"])
def test_an_honest_history_has_no_cause_of_doubt(scenario: str) -> None:
    assert unknown_causes(trial(scenario, 1)) == []


@pytest.mark.parametrize("seed", range(3))
def test_decisions_that_name_a_list_which_nobody_read_are_no_evidence(seed: int) -> None:
    """A split brain in which all members name the same list, and a digest of their own."""
    forged = decisions(
        trial("split-brain", seed), lambda event: {"members_zxid": 999, "view": f"{event.actor}/{event.n}"}
    )
    findings = judge(forged)
    for check in ("disagreement", "contradiction"):
        assert findings[check].outcome is Outcome.UNKNOWN
        assert "which it had not read in that attempt" in findings[check].why


@pytest.mark.parametrize("seed", range(3))
def test_a_group_in_which_the_rule_and_range_deal_the_same_says_nothing_of_the_rule(seed: int) -> None:
    """Z5b: two members deal by range, and own what the rule says."""
    findings = judge(trial("rule", seed, rules="shipped", settings={"members": "2"}))
    assert findings["published_rows"].outcome is Outcome.CLEAN
    assert "ceil_rule" not in findings


@pytest.mark.parametrize("seed", range(3))
def test_late_reports_within_a_work_period_show_no_zombie(seed: int) -> None:
    """Z10: a fenced zombie does no work after its pause, and writes down then what it did before, twice."""
    history = late(seed)
    for check, doubt in (
        ("zombie_overlap", "after its session ended: the reports may be late"),
        ("effect_overlap", "beside another member's work: the reports may be late"),
    ):
        finding = CHECKS[check].judge(history)
        assert finding.outcome is Outcome.UNKNOWN
        assert finding.why.endswith(f"for less than a work period {doubt}")


def test_a_topic_that_grows_within_an_attempt_is_not_a_contradiction() -> None:
    """A watch fires, and the watcher reads the topic again while the member deals from what it read before."""
    at_once = {"latency_min_us": "0", "latency_max_us": "500", "start_min_us": "1000", "start_max_us": "1000"}
    history = trial("growth", 467057, settings={"partitions": "16", "together": "true", **at_once})
    assert CHECKS["contradiction"].judge(history).outcome is Outcome.CLEAN
