"""Ours (as shipped) and real consumers of 0.8.2.2 in one group."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_trials import of_kind, rules_of, trial, unsound
from thorough import only_thorough, usual

from rebalance_lab.history.events import Kind

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

MEMBERS = 4


@pytest.mark.parametrize(("assignor", "seed"), usual([("range", 1)], [("range", 1), ("roundrobin", 2)]))
def test_everything_is_owned_once_whatever_happens_to_either_kind(assignor: str, seed: int, tmp_path: Path) -> None:
    history, result = trial("drill", "mixed", tmp_path, seed=seed, assignor=assignor)
    assert unsound(result) == {}

    rules = rules_of(history)
    assert sorted(rules.values()) == ["real"] * MEMBERS + ["shipped"] * MEMBERS
    # Each thing happened to one of either kind, and bit.
    victims: dict[str, list[str]] = {}
    for event in of_kind(history, Kind.FAULT_BIT):
        if event.of("fault") != "join":
            victims.setdefault(str(event.of("fault")), []).append(rules[str(event.of("target"))])
    assert {fault: sorted(kinds) for fault, kinds in victims.items()} == {
        "pause": ["real", "real", "shipped", "shipped"],
        "leave": ["real", "shipped"],
        "kill": ["real", "shipped"],
    }
    # Both kinds read the registrations of both: they dealt from all of them.
    largest: dict[str, int] = {}
    for event in of_kind(history, Kind.DECIDED):
        dealt_from = event.of("members")
        assert isinstance(dealt_from, int)
        largest[rules[event.actor]] = max(largest.get(rules[event.actor], 0), dealt_from)
    assert largest == {"real": MEMBERS, "shipped": MEMBERS}
    # Those that were paused past their session went on beside their successors, ours and real ones alike.
    assert result.findings["zombie_overlap"].outcome == "violated"
    expired = {rules[event.actor] for event in of_kind(history, Kind.EXPIRED)}
    assert expired == {"real", "shipped"}


@only_thorough
def test_the_first_member_is_ours_with_an_odd_seed_and_real_with_an_even_one(tmp_path: Path) -> None:
    kinds = {}
    for seed in (1, 2):
        history, result = trial("walkthrough", "mixed", tmp_path, seed=seed)
        assert unsound(result) == {}
        kinds[seed] = [rules_of(history)[f"m{number}"] for number in (1, 2, 3, 4)]
    assert kinds == {1: ["shipped", "real", "shipped", "real"], 2: ["real", "shipped", "real", "shipped"]}
