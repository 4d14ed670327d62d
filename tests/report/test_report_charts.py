"""Charts over trials: what is in their data. How they look, the browser's tests see."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from page_tree import Node, Tree
from zombie_story import zombie_case

from rebalance_lab.analysis.counts import kind_counts_of, outcome_counts_of
from rebalance_lab.analysis.results import Analysis, Episode, Fit, HerdCost, Summary, TrialOutcome
from rebalance_lab.history.files import History
from rebalance_lab.report.charts import charts_of, scripts, specs_json
from rebalance_lab.report.charts.comparisons import paired
from rebalance_lab.report.charts.costs import cost_records, fitted_curve
from rebalance_lab.report.charts.distributions import curve_records, ecdf, lengths_of, range_records, rebalance_times
from rebalance_lab.report.findings import surprises_of, tally
from rebalance_lab.report.glossary import words_of
from rebalance_lab.report.page import render

READS = next(cost for cost in words_of("zk").costs if cost.measure == "reads")


def herd_cost(members: int, rules: str = "shipped", change: str = "join", reads: int | None = None) -> HerdCost:
    formula = members * (3 + members + 1 + 7) + 6 + 2 * members
    counted, expected = (formula if reads is None else reads), (formula if reads != 0 else 0)
    return HerdCost(
        "zombie-s7", "herd", "simulated", rules, 1, False, None, "g1", change, 0, 1_000_000, None, members - 1, members,
        0, counted, 12, members, members + 1, expected, 13, members, members + 1, counted - expected, -1,
    )  # fmt: skip


def fit(**fields: object) -> Fit:
    base = Fit("herd", "simulated", "shipped", "join", "reads", "members", "exponent", 8, 4, 1.9, 1.8, 2.0, (1.0, 1.9))
    return replace(base, **fields)  # type: ignore[arg-type]


def outcome(seed: int, found: str, longest_us: int, check: str = "unowned_window", **fields: object) -> TrialOutcome:
    base = TrialOutcome(
        f"t{seed}", "storm", "simulated", "described", seed, False, None, check, found, "", (), longest_us, 1
    )
    return replace(base, **fields)  # type: ignore[arg-type]


class TestCosts:
    def test_points_formula_and_fit(self) -> None:
        costs = tuple(herd_cost(members) for members in (4, 8, 16, 32))
        records, left_out = cost_records(Analysis((), (), (), (), herd_costs=costs, fits=(fit(),)), costs, READS)
        counted = {each["members"]: each["number"] for each in records if each["what"] == "counted"}
        formula = {each["members"]: each["number"] for each in records if each["what"] == "formula"}
        assert counted == formula == {4: 74, 8: 174, 16: 470, 32: 1446}
        assert left_out == 0
        labels = [each["label"] for each in records if each.get("label")]
        assert labels == ["C^1.90 (1.80 to 2.00)"]

    def test_a_scale_of_powers_has_no_zero(self) -> None:
        """Members as shipped do not react to brokers: nothing is read, and nothing can be drawn."""
        costs = (herd_cost(4, change="broker", reads=0), herd_cost(8, "described", "broker"))
        records, _ = cost_records(Analysis((), (), (), ()), costs, READS)
        assert [each["number"] for each in records] == [174, 174]
        rebalances = next(cost for cost in words_of("zk").costs if cost.measure == "rebalances")
        assert len(cost_records(Analysis((), (), (), ()), costs, rebalances)[0]) == 4

    def test_many_points_are_thinned_and_counted(self) -> None:
        costs = tuple(herd_cost(4, reads=reads) for reads in range(1, 701))
        records, left_out = cost_records(Analysis((), (), (), ()), costs, READS)
        counted = sum(each["what"] == "counted" for each in records)
        assert (counted, counted + left_out) == (234, 700)

    def test_changes_that_came_out_the_same_are_one_point(self) -> None:
        costs = (*[herd_cost(4)] * 5000, *[herd_cost(4, reads=75)] * 2, herd_cost(8))
        records, left_out = cost_records(Analysis((), (), (), ()), costs, READS)
        counted = [each for each in records if each["what"] == "counted"]
        assert [(each["members"], each["number"], each["changes"]) for each in counted] == [
            (4, 74, 5000),
            (4, 75, 2),
            (8, 174, 1),
        ]
        assert left_out == 0

    @pytest.mark.parametrize("fields", [{"estimate": None}, {"model": "quadratic"}, {"coefficients": ()}])
    def test_what_has_no_curve_draws_none(self, fields: dict[str, object]) -> None:
        assert fitted_curve(fit(**fields), [4, 8]) == []
        assert len(fitted_curve(fit(), [4, 8])) > 10


class TestDistributions:
    def test_an_ecdf_climbs_to_one(self) -> None:
        assert ecdf([3, 1, 2, 2]) == [(1, 0.25), (2, 0.75), (3, 1.0)]
        thinned = ecdf(range(1000), most=10)
        assert (len(thinned), thinned[0], thinned[-1]) == (10, (0, 0.001), (999, 1.0))

    def test_curves_begin_at_nothing(self) -> None:
        records = curve_records({("storm", "live", "described"): [2.0, 4.0]})
        assert [(each["seconds"], each["share"]) for each in records] == [
            (0.0, 0.0),
            (2.0, 0.0),
            (2.0, 0.5),
            (4.0, 1.0),
        ]

    def test_only_scenarios_that_ever_found_one_are_told_and_no_controls(self) -> None:
        outcomes = (
            outcome(1, "clean", 30_000),
            outcome(2, "violated", 3_000_000),
            outcome(3, "unknown", 9_000_000),
            outcome(4, "violated", 5_000_000, control=True),
            outcome(5, "violated", 5_000_000, plant="two-owners"),
            outcome(6, "clean", 30_000, scenario="calm"),
        )
        assert lengths_of(Analysis((), outcomes, (), ()), "unowned_window") == {
            ("storm", "simulated", "described"): [0.03, 3.0]
        }

    def test_rebalances_of_changes_only(self) -> None:
        trial = zombie_case().analysis.trials[0]
        numbers = dict.fromkeys(
            ("members", "rebalances", "attempts", "failed_attempts", "conflicts", "notifications"), 1
        )
        more = dict.fromkeys(("watches", "reads", "writes", "unowned_us", "doubly_owned_us", "moved"), 1)

        def episode(part: str, end_us: int, *, rested: bool = True) -> Episode:
            return Episode(trial.id, "g1", 0, part, "x", 0, end_us, rested, **numbers, **more)

        episodes = (
            episode("assembly", 9),
            episode("change", 2_000_000),
            episode("change", 0),
            episode("change", 7, rested=False),
        )
        times = rebalance_times(Analysis((), (), (), (trial,), episodes=episodes))
        assert times == {("zombie", "live", "described"): [2.0]}
        assert range_records(times)[0]["median"] == 2.0


def summary(rules: str, p50: float, **fields: object) -> Summary:
    base = Summary("herd", "simulated", rules, False, None, (("members", "8"),), "reads", 3, 1, p50, 9, 9, 9, 5)
    return replace(base, **fields)  # type: ignore[arg-type]


def test_only_what_differs_between_the_rule_sets_is_compared() -> None:
    summaries = (
        summary("described", 100.0), summary("shipped", 150.0),
        summary("described", 7.0, measure="writes"), summary("shipped", 7.0, measure="writes"),
        summary("described", 1.0, measure="moved"),
    )  # fmt: skip
    different, same = paired(summaries)
    assert [(one.p50, other.p50) for one, other in different] == [(100.0, 150.0)]
    assert same == ["writes"]


class TestOnThePage:
    @pytest.fixture
    def analysis(self) -> Analysis:
        costs = tuple(herd_cost(members) for members in (4, 8, 16, 32))
        return replace(zombie_case().analysis, herd_costs=costs, fits=(fit(),))

    def test_each_chart_has_a_spec_and_a_picture(self, analysis: Analysis) -> None:
        page = Tree(render(analysis, zombie_case().histories)).root
        specs = json.loads(page.all("script", id="chart-specs")[0].text)
        charts = [chart.attributes["id"] for chart in page.all("div", class_="chart")]
        assert charts == list(specs)
        assert {"chart-cost-reads", "chart-ecdf-belief-overlap"} <= set(charts)
        pictures = [note.all("svg") for note in page.all("noscript")]
        assert [len(each) for each in pictures] == [1] * len(charts)
        assert all(figure.all("figcaption")[0].text for figure in page.all("figure", class_="chart-figure"))

    def test_nothing_to_show_shows_nothing(self) -> None:
        assert charts_of(Analysis((), (), (), ())) == ()

    def test_the_library_is_inert_inside_its_element(self) -> None:
        assert "</script" not in scripts().lower()
        assert specs_json({"a": {"b": "</script>"}}) == '{"a":{"b":"\\u003c/script>"}}'


class TestOpening:
    """A page of several experiments begins with two pictures."""

    @pytest.fixture
    def page(self) -> Node:
        case = zombie_case()
        zombie = case.histories["zombie-s7"]
        crash = msgspec.structs.replace(zombie.trial, id="crash-s1", scenario="crash")
        costs = tuple(herd_cost(members) for members in (4, 8, 16, 32))
        analysis = replace(case.analysis, trials=(crash, *case.analysis.trials), herd_costs=costs, fits=(fit(),))
        return Tree(render(analysis, {**case.histories, crash.id: History(crash, zombie.events)})).root

    def test_pictures_stand_before_surprises_and_verdicts(self, page: Node) -> None:
        sections = [section.attributes.get("id") for section in page.all("main")[0].children]
        assert sections[:3] == ["opening", "surprises", "verdicts"]
        (opening,) = page.all("section", id="opening")
        assert "is paused for" in opening.all("ol")[0].text
        assert len(opening.all("svg", class_="gantt")) == 1
        assert opening.all("a", class_="own-page")[0].attributes["href"] == "#g1-witness"

    def test_what_a_change_costs_is_not_drawn_twice(self, page: Node) -> None:
        charts = [chart.attributes["id"] for chart in page.all("div", class_="chart")]
        assert charts[0] == "chart-cost-reads"
        assert len(charts) == len(set(charts))
        assert sorted(json.loads(page.all("script", id="chart-specs")[0].text)) == sorted(charts)

    def test_ids_are_unique(self, page: Node) -> None:
        ids = [each.attributes["id"] for each in page.all() if "id" in each.attributes]
        assert len(ids) == len(set(ids))


class TestSurprises:
    def test_trials_alike_are_one_line_and_planted_ones_none(self) -> None:
        case = zombie_case()
        first = case.analysis.trials[0]
        odd = outcome(7, "violated", 1, "registry_overlap", trial=first.id)
        (found,) = surprises_of(replace(case.analysis, outcomes=(odd,)), lambda trial: f"replay {trial}")
        assert (found.first.id, found.trials, found.replay) == (first.id, 1, f"replay {first.id}")
        assert (found.finding.said, found.finding.expected) == ("violated", "clean")

    def test_trials_without_rows_count_too(self) -> None:
        case = zombie_case()
        first = case.analysis.trials[0]
        trials = [first, *(msgspec.structs.replace(first, id=f"again{seed}", seed=seed) for seed in (901, 902, 903))]
        odd = tuple(
            outcome(each.seed, "violated", each.seed, "registry_overlap", trial=each.id, scenario=each.scenario)
            for each in trials
        )
        whole = replace(case.analysis, trials=tuple(trials), outcomes=odd)
        counted = replace(whole, kinds=kind_counts_of(whole), counts=outcome_counts_of(whole))
        sample = replace(counted, trials=(first,), outcomes=odd[:1])
        (found,) = surprises_of(sample, str)
        assert (found.first, found.trials) == (first, 4)
        assert surprises_of(whole, str) == (found,)
        assert tally(sample) == tally(whole)
        page = Tree(render(sample, case.histories)).root
        assert "of 1 of these 4 trials" in page.text
        assert "of these" not in Tree(render(whole, case.histories)).root.text

    def test_they_stand_before_the_trials(self) -> None:
        case = zombie_case()
        odd = outcome(7, "violated", 1, "registry_overlap", trial=case.analysis.trials[0].id)
        page = Tree(render(replace(case.analysis, outcomes=(*case.analysis.outcomes, odd)), case.histories)).root
        sections = [section.attributes.get("id") for section in page.all("main")[0].children]
        assert sections[:3] == ["surprises", "verdicts", "g1"]
        (row,) = page.all("table", class_="surprises")[0].all("tbody")[0].all("tr")
        assert row.all("a")[0].attributes["href"] == "#g1-witness"

    def test_none_is_said(self) -> None:
        page = Tree(render(zombie_case().analysis, zombie_case().histories)).root
        (section,) = page.all("section", id="surprises")
        assert "None: every trial came out as its scenario expects" in section.text


def test_the_strip_leads_from_each_verdict_to_its_witness() -> None:
    page = Tree(render(zombie_case().analysis, zombie_case().histories)).root
    tiles = page.all("ol", class_="strip")[0].all("a")
    assert [(tile.text, tile.attributes["href"]) for tile in tiles] == [
        ("Z16 refuted, a surprise", "#verdicts"), ("Z10 reproduced, as expected", "#g1-witness"),
        ("Z1 unknown", "#verdicts"),
    ]  # fmt: skip
