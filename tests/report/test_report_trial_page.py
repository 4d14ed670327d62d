"""The page of one trial, of many scenarios: whole, linked, and in plain words."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest
from page_tree import Node, Tree

from rebalance_lab.analysis.trialwise.rows import intervals_of, outcomes_of
from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.checks.model import Outcome
from rebalance_lab.history.fault_kinds import fault_kinds
from rebalance_lab.history.files import History
from rebalance_lab.report import glossary
from rebalance_lab.report.bands import Scale, bands_of
from rebalance_lab.report.glossary import terms_of
from rebalance_lab.report.scene import build_scene
from rebalance_lab.report.text import glued, members_named, without_ids
from rebalance_lab.report.trace import trace_of
from rebalance_lab.report.trial_page import render_trial
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

#: Each ends in another way: overlaps, gaps, conflicts, failures, costs, nothing at all.
NAMES = (
    "zombie",
    "crash",
    "uncontrolled",
    "mixed-settings",
    "herd",
    "storm",
    "walkthrough",
    "split-brain",
    "duplicate-id",
)


@cache
def history(name: str) -> History:
    return simulate(make_plan(name))[0]


@cache
def page(name: str) -> Node:
    return Tree(render_trial(history(name), Path("trials") / name, home="../report.html")).root


def story(name: str) -> list[str]:
    return [item.text for item in page(name).all("div", class_="story")[0].all("li")]


@pytest.mark.parametrize("name", NAMES)
class TestEveryPage:
    def test_ids_are_unique_and_links_lead_somewhere(self, name: str) -> None:
        nodes = page(name).all()
        ids = [node.attributes["id"] for node in nodes if "id" in node.attributes]
        assert len(ids) == len(set(ids))
        links = {node.attributes["href"] for node in page(name).all("a")}
        assert "../report.html" in links
        assert {link[1:] for link in links - {"../report.html"}} <= set(ids)

    def test_at_most_five_sentences_without_ids(self, name: str) -> None:
        told = story(name)
        assert 3 <= len(told) <= 5
        assert all(sentence.endswith(".") and sentence.count("consumer") == 0 for sentence in told)
        assert not re.search(r"-\d{13}-[0-9a-f]{8}|suffers", " ".join(told))

    def test_each_violated_anomaly_has_a_card_with_its_whole_witness(self, name: str) -> None:
        wrong = {
            each.check: each
            for each in outcomes_of(history(name).trial, judge(history(name)))
            if each.outcome == Outcome.VIOLATED and CHECKS[each.check].statement is None
        }
        cards = {card.attributes["data-check"]: card for card in page(name).all("section", class_="card")}
        assert set(wrong) <= set(cards)
        for check, outcome in wrong.items():
            assert len(cards[check].all("tr", class_="witness")) == len(set(outcome.witness))
            assert CHECKS[check].meaning in cards[check].text
            assert cards[check].all("pre")[0].text == f"rebalance-lab replay trials/{name}"

    def test_the_first_card_is_unfolded(self, name: str) -> None:
        proofs = page(name).all("details", class_="proof")
        assert ["open" in proof.attributes for proof in proofs] == [nth == 0 for nth in range(len(proofs))]

    def test_its_trace_is_json_whose_slices_have_a_length(self, name: str) -> None:
        records = msgspec.json.decode(trace_of(history(name)))["traceEvents"]
        slices = [record for record in records if record["ph"] == "X"]
        assert len(slices) > 10
        assert all(record["dur"] >= 0 and record["ts"] >= 0 for record in slices)


class TestStories:
    def test_of_a_group_in_which_one_gives_up(self) -> None:
        told = story("uncontrolled")
        assert told[0] == "m1 and m2 share 6 partitions on a simulated ZooKeeper; at 1.49 s m2 joins."
        assert told[2].startswith(
            "What went wrong: m2 gave up after 4 attempts, and owned nothing at the next rest; t1/3 had"
        )
        assert "at worst a partition has no owner for 11." in told[3]

    def test_of_many_changes(self) -> None:
        told = story("herd")
        assert re.fullmatch(
            r"m1 to m8 share 6 partitions \(2 of them get none\) on a simulated ZooKeeper; at 1\.\d+ s m9 joins; "
            r"at 2\.\d+ s m9 leaves cleanly; at 4\.\d+ s m10 joins; at 6\.\d+ s m10, owner of t1/0, is killed; "
            r"at 9\.\d+ s broker 1 comes; at 10\.\d+ s broker 1 goes\.",
            told[0],
        )
        assert re.match(r"ZooKeeper sends \d+ notifications, and this sets off \d+ rebalances, in which", told[1])
        assert re.match(r"Of \d+ attempts to rebalance \d+ fail, \d+ of them because another member holds", told[2])

    def test_of_a_storm(self) -> None:
        assert "all at once, m6 to m9 join and m1 and m2 leave cleanly" in story("storm")[0] + story("storm")[1]


class TestChanges:
    def test_their_cost_stands_beside_the_formula(self) -> None:
        (table,) = page("herd").all("table", class_="changes")
        rows = table.all("tbody")[0].all("tr")
        assert [row.all("th")[0].text for row in rows] == [
            "one joins", "one leaves", "one joins", "one is killed", "a broker comes or goes", "a broker comes or goes",
        ]  # fmt: skip
        first = [cell.text for cell in rows[0].all("td")]
        assert first[:3] == ["9", "8 as the formula", "9 as the formula"]

    def test_a_trial_without_changes_at_rest_has_no_such_table(self) -> None:
        assert page("storm").all("table", class_="changes") == []

    def test_bands_tell_changes_from_faults(self) -> None:
        scene = build_scene(history("herd"), intervals_of(history("herd")))
        bands, _ = bands_of(scene, Scale(0, scene.end_us, 0, 1000), "x")
        told = [(band.kind, band.label) for band in bands]
        assert told == [
            ("change", "m9 joins"), ("change", "m9 leaves"), ("change", "m10 joins"), ("fault", "m10 killed"),
            ("session", "m10's session closed"), ("change", "broker 1 comes"), ("change", "broker 1 goes"),
            ("closing", "end: all leave"),
        ]  # fmt: skip

    def test_changes_of_one_moment_share_a_label(self) -> None:
        scene = build_scene(history("storm"), intervals_of(history("storm")))
        bands, lines = bands_of(scene, Scale(0, scene.end_us, 0, 1000), "x")
        labels = [band.label for band in bands if band.kind == "change" and band.label]
        assert sorted(labels) == ["m1, m2 leave cleanly", "m6, m7, m8, m9 join"]
        assert sum(band.kind == "change" for band in bands) == 6
        assert lines <= 3


class TestStatements:
    def test_what_holds_by_construction_is_marked(self) -> None:
        (table,) = page("walkthrough").all("table", class_="statements")
        said = {row.all("th")[0].text: row.all("td")[0].text for row in table.all("tbody")[0].all("tr")}
        marked = {name for name, text in said.items() if text == "holds by construction, no evidence"}
        checks = ("order_in_rebalance", "published_rows", "startup_order")
        assert marked == {glossary.statement(check) for check in checks}
        assert [row for row in page("herd").all("td") if "herd_cost" in row.text and "construction" in row.text] == []


class TestWords:
    def test_every_check_says_why_it_is_wrong(self) -> None:
        fallback = glossary.together("no such check")
        assert [check for check in CHECKS if glossary.together(check) == fallback] == []

    def test_every_statement_can_hold_or_fail(self) -> None:
        statements = [name for name, check in CHECKS.items() if check.statement]
        assert statements
        assert [name for name in statements if glossary.statement(name) == glossary.title(name)] == []

    def test_words_are_explained_in_one_or_two_sentences(self) -> None:
        assert {"partition", "znode", "rebalance", "witness"} <= set(terms_of(["zk"]))
        assert all(1 <= told.count(". ") + 1 <= 3 and told.endswith(".") for told in terms_of(["zk"]).values())
        assert len(page("zombie").all("details", class_="words")[0].all("dt")) == len(terms_of(["zk"]))

    def test_every_fault_has_words(self) -> None:
        assert all(kind.alone.endswith(".") and kind.suffers and kind.band for kind in fault_kinds().values())

    @pytest.mark.parametrize(
        ("names", "told"),
        [
            (["m1"], "m1"),
            (["m1", "m2", "m3"], "m1, m2 and m3"),
            (["m1", "m2", "m3", "m4"], "m1 to m4"),
            (["m1", "m2", "m4", "m5", "m6"], "m1, m2 and m4 to m6"),
            (["one", "two", "three", "four"], "one, two, three and four"),
        ],
    )
    def test_members_are_named_by_the_ends_of_their_runs(self, names: list[str], told: str) -> None:
        assert members_named(names) == told

    def test_ids_become_hosts(self) -> None:
        text = "g1_host-m3-1443744000027-12a7f1e0 and b_box.local-1443744000027-12a7f1e0 gave up"
        assert without_ids(text) == "m3 and box.local gave up"

    def test_numbers_stay_with_their_unit(self) -> None:
        assert glued("for 2.41 s, or 30 ms later") == "for 2.41\u00a0s, or 30\u00a0ms later"


@pytest.mark.parametrize(
    ("rules", "says"),
    [("shipped", "rules shipped"), ("real", "members: Kafka 0.8.2.2's own consumers"), ("mixed", "own in turn")],
)
def test_whose_consumers_they_were(rules: str, says: str) -> None:
    ours = history("walkthrough")
    trial = msgspec.structs.replace(ours.trial, rules=rules, world="processes")
    text = Tree(render_trial(History(trial, ours.events), Path("trials") / trial.id, home="../report.html")).root.text
    assert text.count(says) == 2, "under the title, and at the trial"
