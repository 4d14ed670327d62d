"""What `run` and the pages say of trials of brokers: in brokers' terms, and true."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest
from page_tree import Tree

from rebalance_lab.checks import lost_write
from rebalance_lab.cli.results import show
from rebalance_lab.history.events import LAYER_OF, Kind, Layer
from rebalance_lab.history.files import History, load
from rebalance_lab.history.replicas import LEADS, REPLICA_ENDED, REPLICA_KINDS, TRUNCATED
from rebalance_lab.report.glossary import words_of
from rebalance_lab.report.trial_page import render_trial, story_of
from rebalance_lab.trials.api import run
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

SETTINGS = {
    "broker-crash": {},
    "committed-data": {},
    "all-replicas-down": {"unclean": "true"},
    "isr-election": {},
}

#: Words of consumer groups.
FOREIGN = re.compile(r"\b(members?|owns|owned|owner(s|ship)?|rebalanc\w*|groups?|holds? t1)\b", re.IGNORECASE)


@cache
def history(name: str) -> History:
    return simulate(make_plan(name, settings=SETTINGS[name]))[0]


def told_of(found: History) -> tuple[str, ...]:
    return story_of(found, Path("trials") / found.trial.id)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_page_speaks_of_brokers(name: str) -> None:
    shown = re.sub(r"<(style|script).*?</\1>", "", render_trial(history(name), Path("trials") / name), flags=re.DOTALL)
    text = Tree(shown).root.text.replace("Rebalance Lab", "").replace("rebalance-lab", "")
    assert FOREIGN.findall(text) == []
    assert "broker" in text


@pytest.mark.parametrize("name", SETTINGS)
def test_the_story_counts_what_the_history_has(name: str) -> None:
    told = " ".join(told_of(history(name)))
    measures = lost_write.judge(history(name)).measures
    assert f"{measures['acknowledged']} are acknowledged" in told
    lost = measures["count"]
    kept = (
        f"{lost} record{'s are' if lost > 1 else ' is'} lost" if lost else f"all {measures['acknowledged']} that were"
    )
    assert kept in told
    for event in history(name).events:
        if event.kind is LEADS:
            assert event.actor in told


def test_a_loss_is_told() -> None:
    """The planted bug forgets the last batch."""
    found = simulate(make_plan("broker-crash", plant="forgets-last-batch"))[0]
    measures = lost_write.judge(found).measures
    assert measures["count"] > 0
    assert f"of {measures['acknowledged']} that were acknowledged, {measures['count']} record" in told_of(found)[-1]


def test_replicas_that_differ_are_told() -> None:
    found = history("committed-data")
    one = next(each for each in found.events if each.of("op") == "read-replica" and each.kind == "ok")
    records = one.of("records")
    assert isinstance(records, list)
    less = msgspec.structs.replace(one, detail={**(one.detail or {}), "records": records[:-1]})
    cut = [less if each is one else each for each in found.events]
    assert "3 replicas that were read are alike" in told_of(found)[-1]
    assert "3 replicas that were read differ" in told_of(History(found.trial, tuple(cut)))[-1]


def test_records_that_were_cut_off_are_counted() -> None:
    plan = make_plan("committed-data", rules="high-watermark", seed=25, settings={"victims": "2", "fault": "kill"})
    found = simulate(plan)[0]
    cuts = [
        int(str(each.of("from_offset"))) - int(str(each.of("to_offset")))
        for each in found.events
        if each.kind is TRUNCATED
    ]
    assert len(cuts) > 1
    assert f"{sum(cuts)} records in {len(cuts)} truncations" in " ".join(told_of(found))


def test_the_command_says_what_happened(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = run(make_plan("isr-election"), tmp_path)
    show(result)
    told = " ".join(capsys.readouterr().out.split())
    assert " ".join(told_of(load(result.folder))) in told


def test_each_kind_of_brokers_events_has_words() -> None:
    words = words_of("replication")
    for kind in REPLICA_KINDS.values():
        assert words.of(kind).deed, kind
        assert words.of(kind).alone != "Allowed by itself.", kind
    assert {LAYER_OF[kind] for kind in REPLICA_KINDS.values()} == {Layer.BELIEF, Layer.EFFECT, Layer.OP}


def roles_added(found: History, *roles: tuple[int, str, Kind]) -> History:
    """A history with further roles of t1/1: (µs after the trial's start, broker, kind)."""
    origin_us = min(each.at_us for each in found.events)
    one = next(each for each in found.events if each.kind is LEADS and each.partition == 1)
    added = [
        msgspec.structs.replace(one, actor=actor, member=actor, n=10_000 + nth, at_us=origin_us + at_us, kind=kind)
        for nth, (at_us, actor, kind) in enumerate(roles)
    ]
    return History(found.trial, tuple(sorted((*found.events, *added), key=lambda each: each.at_us)))


@cache
def two_partitions() -> History:
    """b1 leads t1/0, and b2 leads t1/1, to the end."""
    return simulate(make_plan("isr-per-partition"))[0]


def test_a_leader_of_another_partition_is_no_next_leader() -> None:
    told = " ".join(told_of(two_partitions()))
    assert "have replicas of t1/0–1, and at first b1 leads t1/0 and b2 leads t1/1" in told
    assert "next leader" not in told
    assert "no broker leads" not in told


def test_a_partition_that_changes_its_leader_is_named() -> None:
    found = roles_added(two_partitions(), (4_000_000, "b2", REPLICA_ENDED), (5_500_000, "b4", LEADS))
    assert told_of(found)[2] == "For 1.50 s no broker leads t1/1; the next leader of t1/1 is b4 from 5.50 s."


def test_changes_of_one_partition_are_not_counted_for_another() -> None:
    roles = [(4_000_000 + nth * 100_000, f"b{2 + nth % 2 * 2}", LEADS) for nth in range(1, 7)]
    (told,) = told_of(roles_added(two_partitions(), *roles))[2:-1]
    assert told == "The leader of t1/1 changes 6 times; the last is b2, from 4.60 s."
