"""Trial pages, large groups, diagrams and charts in Debian's Chromium: what is drawn, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from crowd_story import END_S, GAP, OVERLAP, crowd
from playwright.sync_api import Browser, Locator, Page, expect
from test_report_charts import fit, herd_cost
from zombie_story import zombie_case

from rebalance_lab.report.page import render
from rebalance_lab.report.trial_page import render_trial
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore:Session-scoped fixtures defined as instance methods"),
]

Box = tuple[float, float, float, float]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The address on disk of a page: a crowd of so many, a store with charts, or a scenario's trial."""
    folder = tmp_path_factory.mktemp("trial-pages")

    def write(name: str) -> str:
        file: Path = folder / f"{name}.html"
        if not file.exists():
            file.write_text(_page(name), encoding="utf-8")
        return file.as_uri()

    return write


def _page(name: str) -> str:
    if name.startswith("crowd-"):
        return render_trial(crowd(int(name.removeprefix("crowd-"))), Path("trials/crowd"))
    if name == "charts":
        case = zombie_case()
        costs = tuple(herd_cost(size, rules) for size in (4, 8, 16, 32) for rules in ("described", "shipped"))
        return render(replace(case.analysis, herd_costs=costs, fits=(fit(),)), case.histories)
    history, _ = simulate(make_plan(name))
    return render_trial(history, Path("trials") / name)


@pytest.fixture
def opened(page: Page, address: Callable[[str], str]) -> Iterator[Callable[[str], Page]]:
    """Opens a page; it must stay silent, and ask nobody for anything."""
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_viewport_size({"width": 1400, "height": 900})
    page.emulate_media(reduced_motion="reduce")

    def open_page(name: str) -> Page:
        page.goto(address(name))
        return page

    yield open_page
    assert complaints == []
    assert requests
    assert all(url.startswith(("file:", "data:")) for url in requests), requests


def box_of(locator: Locator) -> Box:
    box = locator.bounding_box()
    assert box is not None
    return (box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])


def boxes_of(page: Page, selector: str) -> list[Box]:
    read = "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    return [(box[0], box[1], box[2], box[3]) for box in page.locator(selector).evaluate_all(read)]


def lie_on_each_other(one: Box, other: Box, slack: float = 2) -> bool:
    """More than by a letter's own space."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across > slack and down > slack + 2


class TestKnownPlaces:
    """The small crowd's overlap and gap, found by what is painted there."""

    def painted(self, page: Page, partition: int, layer: str, at_s: float) -> str:
        """The fill of what lies on top of a lane at a moment."""
        left, _, right, _ = box_of(page.locator("#t-figure .plot"))
        lane = page.locator(f'#t-figure .row[data-partition="{partition}"] .lane-{layer}')
        lane.scroll_into_view_if_needed()
        _, top, _, bottom = box_of(lane.locator(".box").first)
        point = [left + (right - left) * at_s / END_S, (top + bottom) / 2]
        read = "([x, y]) => getComputedStyle(document.elementFromPoint(x, y)).fill"
        return str(page.evaluate(read, point))

    def test_the_overlap_is_red_where_it_was_and_nowhere_else(self, opened: Callable[[str], Page]) -> None:
        page = opened("crowd-8")
        begin_s, end_s = OVERLAP
        for at_s in (begin_s + 0.05, (begin_s + end_s) / 2, end_s - 0.05):
            assert "paint-overlap" in self.painted(page, 0, "belief", at_s)
        for at_s in (begin_s - 0.05, end_s + 0.05):
            assert self.painted(page, 0, "belief", at_s) == "rgb(0, 114, 178)"  # m1's
        assert self.painted(page, 0, "registry", sum(OVERLAP) / 2) == "rgb(0, 114, 178)"

    def test_the_gap_is_hatched_where_it_was(self, opened: Callable[[str], Page]) -> None:
        page = opened("crowd-8")
        begin_s, end_s = GAP
        for layer in ("belief", "registry"):
            for at_s in (begin_s + 0.05, (begin_s + end_s) / 2, end_s - 0.05):
                assert "paint-unowned" in self.painted(page, 7, layer, at_s)
            assert "paint-unowned" not in self.painted(page, 7, layer, begin_s - 0.1)
            assert "paint-unowned" not in self.painted(page, 7, layer, end_s + 0.1)


class TestLargeGroup:
    def test_rows_are_high_and_named(self, opened: Callable[[str], Page]) -> None:
        page = opened("crowd-200")
        rows = boxes_of(page, "#t-figure .row-label")
        assert 8 <= len(rows) <= 16
        assert all(below[1] - above[1] > 30 for above, below in pairwise(rows))
        assert page.locator("#t-figure .box-label").count() > len(rows)

    def test_no_label_lies_on_another(self, opened: Callable[[str], Page]) -> None:
        page = opened("crowd-200")
        assert boxes_of(page, "#t-figure .mark-label") == [], "its window is around the overlap, and no mark is there"
        for selector in (".census .lane-label", ".census .mark-label", "#t-figure .row-label"):
            labels = boxes_of(page, selector)
            assert labels
            assert not [pair for pair in combinations(labels, 2) if lie_on_each_other(*pair)], selector

    def test_every_member_has_a_line_in_the_census(self, opened: Callable[[str], Page]) -> None:
        page = opened("crowd-200")
        image = page.locator(".census image")
        left, top, right, bottom = box_of(image)
        assert right - left > 800
        assert bottom - top >= 200


@pytest.mark.parametrize("width", [1400, 800, 390])
@pytest.mark.parametrize("name", ["crowd-200", "uncontrolled", "herd", "charts"])
def test_no_page_is_wider_than_its_window(opened: Callable[[str], Page], name: str, width: int) -> None:
    page = opened(name)
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


class TestDiagram:
    @pytest.mark.parametrize("name", ["uncontrolled", "herd", "crowd-200"])
    def test_labels_of_a_lane_do_not_lie_on_each_other(self, opened: Callable[[str], Page], name: str) -> None:
        page = opened(name)
        labels = boxes_of(page, ".spacetime .mark-group text")
        assert len(labels) > 3
        clashes = [pair for pair in combinations(labels, 2) if lie_on_each_other(*pair, slack=6)]
        assert clashes == []

    def test_arrows_end_at_the_reaction(self, opened: Callable[[str], Page]) -> None:
        page = opened("herd")
        read = """all => all.map(path => {
          const end = path.getPointAtLength(path.getTotalLength());
          const at = new DOMPoint(end.x, end.y).matrixTransform(path.getScreenCTM());
          return [at.x, at.y];
        })"""
        ends = page.locator(".arrow-watch path:not(.reach)").evaluate_all(read)
        watches = boxes_of(page, ".shape-watch .glyph")
        assert len(ends) == 5
        for x, y in ends:
            assert any(box[0] - 12 <= x <= box[2] + 12 and box[1] - 4 <= y <= box[3] + 4 for box in watches)

    def test_from_a_card_to_the_moment_by_keyboard(self, opened: Callable[[str], Page]) -> None:
        page = opened("uncontrolled")
        proof = page.locator(".proof").nth(1)
        expect(proof.locator("table")).to_be_hidden()
        proof.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(proof.locator("table")).to_be_visible()
        moment = proof.locator("a.moment").first
        moment.focus()
        page.keyboard.press("Enter")
        target = page.locator(":target")
        expect(target).to_be_in_viewport()
        assert "mark-group" in (target.get_attribute("class") or "")


class TestCharts:
    def test_points_lie_on_the_formula_and_climb(self, opened: Callable[[str], Page]) -> None:
        page = opened("charts")
        expect(page.locator("#chart-cost-reads svg")).to_be_visible()
        points = boxes_of(page, "#chart-cost-reads .mark-symbol.role-mark path")
        assert len(points) == 8  # two rule sets, four sizes: none is lost, none stands at the edge
        heights = sorted({round((box[1] + box[3]) / 2) for box in points}, reverse=True)
        assert len(heights) == 4
        assert heights[0] - heights[-1] > 60

    def test_they_follow_the_colour_scheme(self, opened: Callable[[str], Page]) -> None:
        page = opened("charts")
        title = page.locator("#chart-cost-reads .role-axis-title text").first
        expect(title).to_be_visible()
        colours = []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            colours.append(title.evaluate("text => getComputedStyle(text).fill"))
        assert len(set(colours)) == 2

    def test_without_scripts_a_picture_stands_there(self, browser: Browser, address: Callable[[str], str]) -> None:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(address("charts"))
        expect(page.locator("#figure-cost-reads .chart-picture")).to_be_visible()
        context.close()
