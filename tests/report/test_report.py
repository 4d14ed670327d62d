"""The report's tree, read as a tree; what it shows is known from the hand-written zombie."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from page_tree import Node, Tree
from zombie_story import zombie_case, zombie_events

from rebalance_lab.analysis.ledger import Expected, Judgement, Status
from rebalance_lab.analysis.results import Analysis, Frequency
from rebalance_lab.history.events import Layer
from rebalance_lab.history.files import History, HistoryError, canonical, digest, seal
from rebalance_lab.report.files import write
from rebalance_lab.report.glossary import terms_of
from rebalance_lab.report.page import render, summary
from rebalance_lab.report.selection import shown_trials


@pytest.fixture(scope="module")
def tree() -> Node:
    case = zombie_case()
    return Tree(render(case.analysis, case.histories)).root


def boxes(tree: Node, figure: str, layer: str, kind: str) -> dict[str, list[tuple[float, float]]]:
    """Begin and end in seconds of the boxes of a kind, by partition."""
    found: dict[str, list[tuple[float, float]]] = {}
    (drawing,) = tree.all("figure", id=f"{figure}-figure")
    for row in drawing.all("g", class_="row"):
        for lane in row.all("g", class_=f"lane-{layer}"):
            for box in lane.all("rect", class_=kind):
                at = tuple(int(box.attributes[f"data-{end}-us"]) / 1_000_000 for end in ("begin", "end"))
                found.setdefault(row.attributes["data-partition"], []).append((at[0], at[1]))
    return found


class TestSelfContained:
    def test_nothing_is_fetched(self, tree: Node) -> None:
        references = [
            value
            for node in tree.all()
            for name, value in node.attributes.items()
            if name in {"href", "src", "srcset", "action", "data", "xlink:href"}
        ]
        assert references
        assert all(re.fullmatch(r"#[\w-]+|data:,", reference) for reference in references), references
        style = " ".join(node.text for node in tree.all("style"))
        assert "@import" not in style
        assert set(re.findall(r"url\((.)", style)) == {"#"}

    def test_a_policy_forbids_the_network(self, tree: Node) -> None:
        (policy,) = tree.all("meta", http_equiv="Content-Security-Policy")
        assert policy.attributes["content"].startswith("default-src 'none';")

    def test_ids_are_unique_and_every_link_has_its_target(self, tree: Node) -> None:
        ids = [node.attributes["id"] for node in tree.all() if "id" in node.attributes]
        assert len(ids) == len(set(ids))
        links = {node.attributes["href"][1:] for node in tree.all("a")}
        assert len(links) > 10
        assert links <= set(ids)
        paints = set(re.findall(r"url\(#([\w-]+)\)", " ".join(v for n in tree.all() for v in n.attributes.values())))
        assert paints <= set(ids)


def rows_of(table: Node) -> list[Node]:
    return table.all("tbody")[0].all("tr")


class TestVerdicts:
    def test_surprises_stand_first(self, tree: Node) -> None:
        (table,) = tree.all("table", class_="verdicts")
        rows = table.all("tbody")[0].all("tr")
        assert [row.all("th")[0].text for row in rows] == ["Z16", "Z10", "Z1"]
        assert [row.all("span", class_="chip")[0].text for row in rows] == [
            "refuted, a surprise",
            "reproduced, as expected",
            "unknown",
        ]
        assert "expected: reproduced" in rows[0].text
        assert rows[1].all("a")[0].attributes["href"] == "#g1-witness"

    def test_what_was_not_run_is_folded_with_its_reason(self, tree: Node) -> None:
        (details,) = tree.all("details", class_="not-run")
        assert "open" not in details.attributes
        assert details.all("summary")[0].text == "Not run: 1 reading"
        (row,) = details.all("tbody")[0].all("tr")
        assert row.text == ("E1 all The first broker to create /controller is controller its scenario is not built yet")

    def test_what_holds_by_construction_stands_apart(self, tree: Node) -> None:
        assert tree.all("details", class_="by-construction") == []
        case = zombie_case()
        built = tuple(replace(each, by_construction=True) for each in case.analysis.verdicts)
        page = Tree(render(replace(case.analysis, verdicts=built), case.histories)).root
        evidence, apart = page.all("table", class_="verdicts")
        assert [row.all("th")[0].text for row in evidence.all("tbody")[0].all("tr")] == ["Z16"]  # the surprise
        chips = [(row.all("th")[0].text, row.all("span", class_="chip")[0].text) for row in rows_of(apart)]
        assert chips == [("Z10", "reproduced, by construction"), ("Z1", "unknown, by construction")]
        assert [tile.all("span", class_="claim-id")[0].text for tile in page.all("a", class_="tile")] == ["Z16"]
        lead = page.all("p", class_="lead")[0].text
        assert lead.startswith("1 reading of claims was tested: 1 surprising, in ")
        assert lead.endswith(" 2 more hold by construction, which is not evidence.")

    def test_a_claim_that_does_not_apply_has_its_own_chip_and_count(self) -> None:
        case = zombie_case()
        verdicts = tuple(
            replace(
                each,
                expected=Expected.DOES_NOT_APPLY,
                verdict=Judgement.DOES_NOT_APPLY,
                status=Status.DOES_NOT_APPLY,
            )
            for each in case.analysis.verdicts
            if each.status == "as expected"
        )
        page = Tree(render(replace(case.analysis, verdicts=verdicts), case.histories)).root
        (table,) = page.all("table", class_="verdicts")
        assert [chip.text for chip in table.all("span", class_="chip-does-not-apply")] == ["does not apply"]
        assert "1 to which the claim does not apply" in page.all("p", class_="lead")[0].text

    def test_refuted_as_expected_cannot_be_read_as_true(self) -> None:
        case = zombie_case()
        refuted = tuple(
            replace(
                each,
                expected=Expected.REFUTED,
                verdict=Judgement.REFUTED,
                frequencies=(Frequency("live", 0, 1, 0.0, 0.8, 7),),
            )
            for each in case.analysis.verdicts
            if each.status == "as expected"
        )
        page = Tree(render(replace(case.analysis, verdicts=refuted), case.histories)).root
        chips = [chip for chip in page.all("span", class_="chip") if "as expected" in chip.text]
        assert [(chip.text, chip.attributes["class"]) for chip in chips] == [
            ("refuted, as expected", "chip chip-refuted")
        ] * 2  # in the table, and over the pictures
        assert [tile.attributes["class"] for tile in page.all("a", class_="tile")] == ["tile tile-refuted"]
        assert "1 as expected (0 reproduced, 1 refuted)" in page.all("p", class_="lead")[0].text
        (table,) = page.all("table", class_="verdicts")
        assert "7 undecided" in table.text

    def test_an_outcome_without_expectation_is_explained(self) -> None:
        case = zombie_case()
        outcomes = tuple(replace(each, check="churn") for each in case.analysis.outcomes)
        page = Tree(render(replace(case.analysis, outcomes=outcomes), case.histories)).root
        explained = {each.attributes["title"] for each in page.all("abbr")}
        assert explained == {terms_of(["zk"])["either"]}

    def test_the_summary_is_one_sentence(self, tree: Node) -> None:
        expected = (
            "3 readings of claims were tested: 1 surprising, 1 as expected and 1 unknown, "
            "in 2 live and 0 simulated trials."
        )
        assert summary(zombie_case().analysis) == expected
        assert tree.all("p", class_="lead")[0].text == expected

    def test_an_empty_analysis_is_a_page_too(self) -> None:
        empty = Tree(render(Analysis((), (), (), ()), {})).root
        assert empty.all("p", class_="lead")[0].text == "No claim was tested yet, in 0 live and 0 simulated trials."
        assert empty.all("svg", class_="gantt") == []


class TestGantt:
    def test_overlaps_lie_where_the_history_has_them(self, tree: Node) -> None:
        assert boxes(tree, "g1-witness", "belief", "overlap") == {"0": [(5.6, 8.36)], "1": [(5.6, 8.36)]}
        assert boxes(tree, "g1-witness", "effect", "overlap") == {"0": [(8.02, 8.42)], "1": [(8.02, 8.42)]}
        assert boxes(tree, "g1-witness", "registry", "overlap") == {}

    def test_the_control_has_none(self, tree: Node) -> None:
        assert len(boxes(tree, "g1-control", "belief", "held")) == 6
        for layer in Layer.BELIEF, Layer.REGISTRY, Layer.EFFECT:
            assert boxes(tree, "g1-control", layer, "overlap") == {}

    def test_what_nobody_has_is_hatched(self, tree: Node) -> None:
        registry = boxes(tree, "g1-witness", "registry", "unowned")
        assert registry["0"] == [(5.5, 5.595), (8.525, 8.895)]
        assert boxes(tree, "g1-witness", "effect", "unowned")["0"][0] == (2.98, 5.61)

    def test_windows_of_the_closing_phase_are_no_news(self, tree: Node) -> None:
        ends = [end for gaps in boxes(tree, "g1-witness", "belief", "unowned").values() for _, end in gaps]
        assert ends
        assert max(ends) == 8.9  # all leave from 11.0 on, and nothing after that is hatched

    def test_bands_name_the_fault_the_session_and_the_end(self, tree: Node) -> None:
        (drawing,) = tree.all("figure", id="g1-witness-figure")
        bands = {band.attributes["data-kind"]: band for band in drawing.all("g", class_="band-group")}
        fault = bands["fault"]
        assert (fault.attributes["data-begin-us"], fault.attributes["data-end-us"]) == ("3000000", "8000000")
        assert "Proof: /proc/4711/stat says T" in fault.text
        assert bands["session"].attributes["data-begin-us"] == "5500000"
        assert bands["closing"].attributes["data-begin-us"] == "11000000"
        labels = [label.text for label in drawing.all("text", class_="mark-label")]
        assert labels == ["m1 paused 5.00 s", "m1's session closed", "end: all leave"]

    def test_names_are_short_and_ids_in_tooltips(self, tree: Node) -> None:
        (drawing,) = tree.all("figure", id="g1-witness-figure")
        (legend,) = drawing.all("ul", class_="legend")
        entries = [(item.text, item.attributes.get("title")) for item in legend.all("li")]
        assert entries[:2] == [("m1", "g1_host-m1-1700000000000-m1m1m1m1"), ("m2", "g1_host-m2-1700000000000-m2m2m2m2")]
        first = drawing.all("rect", class_="held")[0]
        assert first.text == ("m1 believes it owns t1/0 (g1_host-m1-1700000000000-m1m1m1m1), 0.500000 to 8.360000 s")

    def test_witness_and_control_share_a_scale(self, tree: Node) -> None:
        drawings = tree.all("svg", class_="gantt")
        assert [drawing.attributes["data-end-us"] for drawing in drawings] == ["11200000", "11200000"]
        ticks = [[tick.text for tick in drawing.all("g", class_="ticks")[0].all("text")] for drawing in drawings]
        assert ticks[0] == ticks[1] == [*(str(second) for second in range(12)), "seconds from the trial’s start"]


class TestCards:
    def test_one_for_each_violated_check(self, tree: Node) -> None:
        cards = tree.all("section", class_="card")
        assert [card.attributes["data-check"] for card in cards] == ["belief_overlap", "effect_overlap"]
        assert all(card.above("article").attributes["id"] == "g1-witness" for card in cards)
        assert [card.all("p", class_="kicker")[0].text for card in cards] == ["Zombie m1", "Zombie m1"]
        assert [card.all("h4")[0].text for card in cards] == ["Belief overlap", "Effect overlap"]
        assert "Longest 2.76 s" in cards[0].text
        assert "Longest 0.40 s" in cards[1].text

    def test_the_witness_in_order_beside_what_led_to_it(self, tree: Node) -> None:
        card = tree.all("section", class_="card")[0]
        events = card.all("tbody")[0].all("tr")
        rows = [
            (row.attributes["class"], *(cell.text.removesuffix(" ⤓") for cell in row.all("td")[:4])) for row in events
        ]
        assert rows == [
            ("witness", "0.500000", "m1", "belief", "m1 now believes it owns t1/0 witness"),
            ("context", "3.000000", "runner", "fault", "m1 is paused"),
            ("context", "5.500000", "zookeeper", "registry", "ZooKeeper closes session 0x100000000000101 of m1"),
            ("witness", "5.600000", "m2", "belief", "m2 now believes it owns t1/0 witness"),
            ("context", "8.000000", "runner", "fault", "the pause of m1 ends"),
            ("context", "8.350000", "m1", "op", "m1 learns that session 0x100000000000101 is gone"),
            ("witness", "8.360000", "m1", "belief", "m1 no longer believes it owns t1/0 witness"),
        ]
        assert all(row.all("td")[4].text for row in card.all("tbody")[0].all("tr"))
        assert "Why it is wrong together:" in card.text

    def test_events_lead_to_their_place_in_the_picture(self, tree: Node) -> None:
        card = tree.all("section", class_="card")[0]
        by_id = {node.attributes["id"]: node for node in tree.all() if "id" in node.attributes}
        links = [link for link in card.all("tbody")[0].all("a") if link.attributes.get("class") != "moment"]
        targets = [by_id[link.attributes["href"][1:]] for link in links]
        titles = [target.text or target.attributes["data-kind"] for target in targets]
        assert titles[0].startswith("m1 believes it owns t1/0")
        assert titles[1].startswith("Fault pause on m1")
        assert titles[2].startswith("ZooKeeper closes session")
        assert titles[3].startswith("m2 believes it owns t1/0")
        (jump,) = card.all("div", class_="jump")
        overlap = by_id[jump.all("a")[0].attributes["href"][1:]]
        assert overlap.text.startswith("Overlap of 2.76 s: m1 and m2 believe they own t1/0")
        assert overlap.above("a").attributes["href"] == f"#{card.attributes['id']}"

    def test_the_replay_command_is_the_ledgers(self, tree: Node) -> None:
        card = tree.all("section", class_="card")[0]
        assert card.all("pre")[0].text == "rebalance-lab replay zombie-s7 --store trials"

    def test_reports_of_work_lead_to_their_run(self, tree: Node) -> None:
        card = tree.all("section", class_="card")[1]
        by_id = {node.attributes["id"]: node for node in tree.all() if "id" in node.attributes}
        links = [row.all("a")[0] for row in card.all("tr", class_="witness")]
        assert len(links) == 3
        for link in links:
            run = by_id[link.attributes["href"][1:]]
            assert run.attributes["class"] == "box held"
            assert run.text.startswith(link.text)


def test_outcomes_use_short_names_and_keep_the_full_text(tree: Node) -> None:
    (witness,) = tree.all("article", id="g1-witness")
    (table,) = witness.all("table", class_="outcomes")
    rows = table.all("tbody")[0].all("tr")
    assert [row.all("th")[0].text for row in rows] == [
        "Belief overlap", "Effect overlap", "Registration", "Registry overlap", "Unowned window",
    ]  # fmt: skip
    why = rows[0].all("td")[1]
    assert why.text == "m1 and m2 both believed for 2.760 s that they owned t1/0"
    assert "g1_host-m1-1700000000000-m1m1m1m1" in why.attributes["title"]
    assert [row.all("span", class_="chip")[0].text for row in rows] == ["violated"] * 2 + ["clean"] * 3


def test_parameters_and_versions_are_there(tree: Node) -> None:
    (witness,) = tree.all("article", id="g1-witness")
    (settings,) = witness.all("details", class_="settings")
    pairs = dict(zip((n.text for n in settings.all("dt")), (n.text for n in settings.all("dd")), strict=True))
    assert pairs["pause_ms"] == "5000"
    assert pairs["assignor"] == "(empty)"
    assert pairs["zookeeper"] == "3.9.4"
    assert pairs["history_sha256"] == digest(zombie_events("t1", 6))
    assert tree.all("footer")[0].text == "python 3.11 · rebalance-lab 0.1.0 · zookeeper 3.9.4"


def test_all_trials_are_counted(tree: Node) -> None:
    (table,) = tree.all("table", class_="tallies")
    rows = table.all("tbody")[0].all("tr")
    assert [row.all("th")[0].text for row in rows] == [
        "zombie control, live, described",
        "with its fault, live, described",
    ]
    heads = [head.text for head in table.all("th", class_="upright")]
    assert heads == ["Belief overlap", "Effect overlap", "Registration", "Registry overlap", "Unowned window"]
    cells = [[cell.text for cell in row.all("td")] for row in rows]
    assert cells == [["1", *["· 0"] * 5], ["1", "1", "1", *["· 0"] * 3]]
    found = rows[1].all("td", class_="found")
    assert [cell.attributes["title"] for cell in found] == [
        "Belief overlap: 1 violated, 0 clean, 0 unknown; longest 2.76 s to 2.76 s",
        "Effect overlap: 1 violated, 0 clean, 0 unknown; longest 0.40 s to 0.40 s",
    ]


class TestEscaping:
    EVIL = '<b>&"'

    def test_a_topic_is_data(self) -> None:
        case = zombie_case(topic=self.EVIL)
        tree = Tree(render(case.analysis, case.histories)).root
        assert tree.all("b") == []
        assert {row.attributes["data-topic"] for row in tree.all("g", class_="row")} == {self.EVIL}
        assert tree.all("text", class_="row-label")[0].text == f"{self.EVIL}/0 of group g1 {self.EVIL}/0"
        assert len(tree.all("section", class_="card")) == 2

    def test_so_is_every_text_of_a_verdict_and_a_trial(self) -> None:
        case = zombie_case()
        evil = "</script><script>alert(1)</script>"
        names = ("claim", "reading", "statement", "why", "replay")
        hostile: dict[str, Any] = dict.fromkeys(names, evil)
        verdicts = tuple(replace(each, **hostile) for each in case.analysis.verdicts)
        trials = tuple(
            msgspec.structs.replace(each, scenario=evil, rules=evil, versions={evil: evil})
            for each in case.analysis.trials
        )
        analysis = replace(case.analysis, verdicts=verdicts, trials=trials)
        tree = Tree(render(analysis, case.histories)).root
        assert len(tree.all("script")) == len(Tree(render(case.analysis, case.histories)).root.all("script")) == 3
        assert tree.all("pre")[0].text == evil


class TestHistories:
    def test_a_missing_history_is_said(self) -> None:
        case = zombie_case()
        tree = Tree(render(case.analysis, {})).root
        (witness,) = tree.all("article", id="g1-witness")
        assert "The history of trial zombie-s7 is missing" in witness.text
        assert "2.760 s" in witness.all("table", class_="outcomes")[0].text
        assert tree.all("svg", class_="gantt") == []

    def test_one_without_events_is_refused(self) -> None:
        case = zombie_case()
        empty = {name: History(history.trial, ()) for name, history in case.histories.items()}
        with pytest.raises(ValueError, match="trial zombie-s7 has no events"):
            render(case.analysis, empty)

    def test_a_store_becomes_a_file(self, tmp_path: Path) -> None:
        case = zombie_case()
        for name, history in case.histories.items():
            folder = tmp_path / "trials" / name
            folder.mkdir(parents=True)
            (folder / "all.jsonl").write_bytes(canonical(history.events))
            seal(folder, history.trial)
        out = tmp_path / "new" / "report.html"
        assert shown_trials(case.analysis) == ("zombie-s7", "zombie-s7-control")
        assert write(case.analysis, tmp_path / "trials", out) == out
        page = out.read_text(encoding="utf-8")
        pages = {name: f"pages/{name}.html" for name in case.histories}
        assert page == render(case.analysis, case.histories, folders={"zombie-s7-control": folder}, pages=pages)
        assert f"rebalance-lab replay {folder}</code>" in page
        assert sorted(path.name for path in out.parent.rglob("*.html")) == [
            "report.html", "zombie-s7-control.html", "zombie-s7.html",
        ]  # fmt: skip

    def test_the_pages_of_a_store_lead_to_each_other(self, tmp_path: Path) -> None:
        case = zombie_case()
        for name, history in case.histories.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "all.jsonl").write_bytes(canonical(history.events))
            seal(tmp_path / name, history.trial)
        home = write(case.analysis, tmp_path, tmp_path / "report.html")
        links = [link.attributes["href"] for link in Tree(home.read_text(encoding="utf-8")).root.all("a")]
        own = [link for link in links if not link.startswith("#")]
        assert own == ["pages/zombie-s7.html", "pages/zombie-s7-control.html"]
        for link in own:
            page = Tree((tmp_path / link).read_text(encoding="utf-8")).root
            back = {each.attributes["href"] for each in page.all("a") if not each.attributes["href"].startswith("#")}
            assert back == {"../report.html"}

    def test_without_pages_only_one_file_is_written(self, tmp_path: Path) -> None:
        out = tmp_path / "new" / "report.html"
        write(zombie_case().analysis, tmp_path, out, with_pages=False)
        assert [path.name for path in out.parent.iterdir()] == ["report.html"]

    def test_a_broken_trial_names_its_file(self, tmp_path: Path) -> None:
        case = zombie_case()
        folder = tmp_path / "zombie-s7"
        folder.mkdir()
        (folder / "all.jsonl").write_bytes(b"no event\n")
        seal(folder, case.histories["zombie-s7"].trial)
        with pytest.raises(HistoryError, match=r"all\.jsonl:1 is not an event"):
            write(case.analysis, tmp_path, tmp_path / "report.html")
        assert not (tmp_path / "report.html").exists()
