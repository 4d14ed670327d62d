"""Trials whose members are all real consumers of 0.8.2.2: what holds of ours must hold of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_trials import ledger, of_kind, outcomes, rules_of, trial, unsound
from thorough import only_thorough

from rebalance_lab.history.events import Kind
from rebalance_lab.history.views import beliefs, owners

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

#: Nothing else happens to owners of a group at rest.
SETTLE_US = 500_000


@only_thorough
def test_walkthrough_gives_the_published_rows_and_refutes_the_order_of_the_start(tmp_path: Path) -> None:
    history, result = trial("walkthrough", "real", tmp_path)
    assert set(rules_of(history).values()) == {"real"}
    assert unsound(result) == {}
    found = outcomes(result)
    assert found["published_rows"] == "clean"
    assert found["order_in_rebalance"] == "clean"
    assert found["disagreement"] == "clean"
    assert "did not watch the brokers before its first rebalance" in found["startup_order"]  # Z6, as shipped
    assert history.trial.versions["kafka consumer"] == "0.8.2.2"
    assert history.trial.versions["kafka broker"] == "3.9.1"
    reading = ledger(tmp_path, "Z6")
    assert (reading["verdict"], reading["status"], reading["live"]) == ("refuted", "as expected", 1), reading["why"]


def test_what_the_logs_tell_is_what_the_registry_shows(tmp_path: Path) -> None:
    """Belief comes from the members' logs, the registry from the server's: each claim that lasted is in both."""
    history, _ = trial("walkthrough", "real", tmp_path)
    told = {(one.member, one.partition) for one in beliefs(history) if one.end_us - one.begin_us > SETTLE_US}
    shown = {(one.member, one.partition) for one in owners(history) if one.end_us - one.begin_us > SETTLE_US}
    assert told == shown
    # What a member told that it wrote, the server logged, under the same zxid.
    written = {
        (event.zxid, event.of("path"))
        for event in of_kind(history, Kind.OK)
        if event.of("op") in {"create", "delete"} and event.actor in rules_of(history)
    }
    logged = {
        (event.zxid, event.of("path")) for kind in (Kind.CREATED, Kind.DELETED) for event in of_kind(history, kind)
    }
    assert len(written) > 20
    assert written <= logged


def test_a_real_member_paused_past_its_session_works_on_beside_its_successor(tmp_path: Path) -> None:
    _, result = trial("zombie", "real", tmp_path, pause_ms="10000")
    assert unsound(result) == {}
    for check in ("belief_overlap", "effect_overlap", "zombie_overlap"):
        assert result.findings[check].outcome == "violated", outcomes(result)[check]
    _, harmless = trial("zombie", "real", tmp_path, pause_ms="1500")
    assert unsound(harmless) == {}
    for check in ("belief_overlap", "effect_overlap", "zombie_overlap"):
        assert harmless.findings[check].outcome == "clean", outcomes(harmless)[check]


def test_real_members_seen_through_a_lagging_server_deal_from_different_lists(tmp_path: Path) -> None:
    _, result = trial("split-brain", "real", tmp_path)
    assert result.findings["disagreement"].measures["views_apart"] > 0, outcomes(result)["disagreement"]
    assert result.findings["registry_overlap"].outcome == "clean"


def test_a_rolling_restart_of_real_members_costs_what_the_formula_says(tmp_path: Path) -> None:
    history, result = trial("rolling-restart", "real", tmp_path)
    assert unsound(result) == {}
    assert result.findings["herd_cost"].outcome == "clean", outcomes(result)["herd_cost"]
    began = [event for event in of_kind(history, Kind.PHASE) if event.of("change") is not None]
    closing = next(event for event in of_kind(history, Kind.PHASE) if event.of("name") == "closing")
    rebalances = [
        event for event in of_kind(history, Kind.REBALANCE_BEGAN) if began[0].at_us <= event.at_us < closing.at_us
    ]
    members = 3
    assert 0 < len(rebalances) <= members * (2 * members - 1)  # notifications may come together


def test_every_change_in_a_herd_of_real_members_makes_all_rebalance(tmp_path: Path) -> None:
    _, result = trial("herd", "real", tmp_path, members="4")
    assert unsound(result) == {}
    herd = result.findings["herd_cost"]
    assert herd.outcome == "clean", herd.why
    assert herd.measures["join_1_rebalances"] == 5
    assert herd.measures["broker_5_rebalances"] == 0  # Z7b: as shipped nobody watches the brokers


def test_a_real_member_whose_first_rebalance_fails_leaves_by_itself(tmp_path: Path) -> None:
    """It meets its ghost, which lives for two thirds of a session at least: time for a JVM to start."""
    history, result = trial(
        "fast-restart", "real", tmp_path, rebalance_max_retries="1", session_timeout_ms="12000", tick_ms="1000"
    )
    told = [event for event in history.events if event.actor == "m2"]
    (ended,) = [event for event in told if event.kind is Kind.REBALANCE_ENDED]
    assert ended.detail == {"outcome": "failed", "attempts": 1}
    assert told[-1].kind is Kind.MEMBER_CLOSED
    closing = next(event for event in of_kind(history, Kind.PHASE) if event.of("name") == "closing")
    assert told[-1].at_us < closing.at_us  # nobody asked it to
    assert not [event for event in told if event.kind is Kind.OWNED]  # it does not stay to become F9's ghost
    assert result.findings["non_convergence"].outcome == "violated", outcomes(result)["non_convergence"]
