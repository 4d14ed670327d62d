"""The page in Debian's Chromium: from disk, silent, everything in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Locator, Page, Request, expect
from zombie_story import case_with_sister

from rebalance_lab.report.page import render

pytestmark = [
    pytest.mark.browser,
    # pytest-base-url, which pytest-playwright stands on, defines its fixture so under pytest 9
    pytest.mark.filterwarnings("ignore:Session-scoped fixtures defined as instance methods"),
]

LENGTH_S = 11.2  # of the hand-written zombie
PLOT = "#g1-witness-figure .plot"


class Watched:
    """A page, and what it said or asked for that it should not have."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", self._request)
        page.on("console", self._console)
        page.on("pageerror", self._error)

    def _request(self, request: Request) -> None:
        self.requests.append(request.url)

    def _console(self, message: ConsoleMessage) -> None:
        self.complaints.append(f"{message.type}: {message.text}")

    def _error(self, error: Error) -> None:
        self.complaints.append(str(error))


@pytest.fixture
def watched(page: Page, page_file: Callable[[int], str]) -> Iterator[Watched]:
    """The six-partition page, opened; whatever a test does there must stay silent and local."""
    watched = Watched(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(reduced_motion="reduce")
    page.goto(page_file(6))
    yield watched
    assert watched.complaints == []
    assert watched.requests
    assert all(url.startswith(("file:", "data:")) for url in watched.requests), watched.requests


def box_of(locator: Locator) -> tuple[float, float, float, float]:
    """left, top, right, bottom in CSS pixels."""
    box = locator.bounding_box()
    assert box is not None
    return (box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"])


def boxes_of(page: Page, selector: str) -> list[tuple[float, float, float, float]]:
    """As `box_of`, for many at once."""
    read = "all => all.map(e => e.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
    return [(box[0], box[1], box[2], box[3]) for box in page.locator(selector).evaluate_all(read)]


def row(page: Page, partition: int) -> Locator:
    return page.locator(f'#g1-witness-figure .row[data-partition="{partition}"]')


def expected_x(page: Page, at_s: float) -> float:
    left, _, right, _ = box_of(page.locator(PLOT))
    return left + (right - left) * at_s / LENGTH_S


def test_opens_from_disk_in_silence(watched: Watched) -> None:
    expect(watched.page).to_have_title("Rebalance Lab: who owns what, and who says so")
    expect(watched.page.get_by_role("heading", level=1)).to_be_visible()
    expect(watched.page.locator("svg.gantt")).to_have_count(2)


def test_even_a_script_cannot_reach_the_network(page: Page, page_file: Callable[[int], str]) -> None:
    watched = Watched(page)
    page.goto(page_file(6))
    outcome = page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', error => error.name)")
    assert outcome == "TypeError"
    assert any("Content Security Policy" in complaint for complaint in watched.complaints)


class TestWhereThingsLie:
    @pytest.mark.parametrize(
        ("layer", "partition", "begin_s", "end_s"),
        [("belief", 0, 5.6, 8.36), ("belief", 1, 5.6, 8.36), ("effect", 0, 8.02, 8.42), ("effect", 1, 8.02, 8.42)],
    )
    def test_the_known_overlap(
        self, watched: Watched, layer: str, partition: int, begin_s: float, end_s: float
    ) -> None:
        page = watched.page
        overlap = row(page, partition).locator(f".lane-{layer} .overlap")
        expect(overlap).to_have_count(1)
        left, top, right, bottom = box_of(overlap)
        assert left == pytest.approx(expected_x(page, begin_s), abs=2)
        assert right == pytest.approx(expected_x(page, end_s), abs=2)
        assert overlap.get_attribute("data-begin-us") == str(round(begin_s * 1_000_000))
        _, label_top, _, label_bottom = box_of(row(page, partition).locator(".row-label"))
        lanes = [box_of(row(page, partition).locator(f".lane-{name} .held").first) for name in LAYERS]
        assert lanes[0][1] <= label_top < label_bottom <= lanes[2][3]
        assert (top, bottom) == pytest.approx((lanes[LAYERS.index(layer)][1], lanes[LAYERS.index(layer)][3]), abs=2)

    def test_it_is_painted_on_top(self, watched: Watched) -> None:
        overlap = row(watched.page, 0).locator(".lane-belief .overlap")
        overlap.scroll_into_view_if_needed()
        left, top, right, bottom = box_of(overlap)
        point = [(left + right) / 2, (top + bottom) / 2]
        topmost = watched.page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", point)
        assert topmost == overlap.get_attribute("id")
        assert "paint-overlap" in overlap.evaluate("rect => getComputedStyle(rect).fill")

    def test_nothing_overlaps_elsewhere(self, watched: Watched) -> None:
        expect(watched.page.locator(".overlap")).to_have_count(4)
        expect(watched.page.locator("#g1-control .overlap")).to_have_count(0)

    def test_ticks_and_fault_band_keep_the_scale(self, watched: Watched) -> None:
        page = watched.page
        for second in (0, 5, 11):
            tick = page.locator("#g1-witness-figure .ticks text").get_by_text(str(second), exact=True)
            left, _, right, _ = box_of(tick)
            assert (left + right) / 2 == pytest.approx(expected_x(page, second), abs=2)
        left, top, right, bottom = box_of(page.locator("#g1-witness-figure .band-fault").last)
        assert (left, right) == pytest.approx((expected_x(page, 3), expected_x(page, 8)), abs=2)
        _, plot_top, _, plot_bottom = box_of(page.locator(PLOT))
        assert (top, bottom) == pytest.approx((plot_top, plot_bottom), abs=2)

    def test_witness_and_control_stand_at_the_same_x(self, watched: Watched) -> None:
        witness, control = (box_of(watched.page.locator(f"#g1-{name}-figure .plot")) for name in ("witness", "control"))
        assert (witness[0], witness[2]) == (control[0], control[2])


LAYERS = ("belief", "registry", "effect")


class TestLayers:
    def visible(self, page: Page) -> list[str]:
        return [name for name in LAYERS if row(page, 0).locator(f".lane-{name} .held").first.is_visible()]

    @pytest.mark.parametrize("layer", LAYERS)
    def test_one_at_a_time_fills_the_row(self, watched: Watched, layer: str) -> None:
        page = watched.page
        first = row(page, 0).locator(f".lane-{layer} .held").first
        _, low, _, high = box_of(first)
        page.locator("#g1-witness-figure").get_by_text(layer.capitalize(), exact=True).click()
        assert self.visible(page) == [layer]
        _, top, _, bottom = box_of(first)
        assert bottom - top > 3 * (high - low)
        _, next_top, _, _ = box_of(row(page, 1).locator(f".lane-{layer} .held").first)
        assert bottom < next_top
        expect(page.locator("#g1-control-figure .lane-belief .held").first).to_be_visible()

    def test_by_keyboard(self, watched: Watched) -> None:
        page = watched.page
        page.locator("#g1-witness-figure input[value=all]").focus()
        assert self.visible(page) == [*LAYERS]
        for layer in LAYERS:
            page.keyboard.press("ArrowRight")
            assert self.visible(page) == [layer]
        page.keyboard.press("ArrowRight")
        assert self.visible(page) == [*LAYERS]

    def test_without_scripts(self, browser: Browser, page_file: Callable[[int], str]) -> None:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(page_file(6))
        for layer in LAYERS:
            expect(row(page, 0).locator(f".lane-{layer} .held").first).to_be_visible()
        page.locator("#g1-witness-figure").get_by_text("Effect", exact=True).click()
        expect(row(page, 0).locator(".lane-belief .held").first).to_be_hidden()
        expect(row(page, 0).locator(".lane-effect .held").first).to_be_visible()
        expect(page.locator("button.copy").first).to_be_hidden()
        context.close()


class TestLinks:
    def test_from_the_card_to_the_overlap(self, watched: Watched) -> None:
        page = watched.page
        overlap = row(page, 0).locator(".lane-belief .overlap")
        before = overlap.evaluate("rect => getComputedStyle(rect).strokeWidth")
        page.locator("#g1-witness-card-0").get_by_text("Show it in the picture").click()
        expect(overlap).to_be_in_viewport()
        assert page.evaluate("document.querySelector(':target').id") == overlap.get_attribute("id")
        assert overlap.evaluate("rect => getComputedStyle(rect).strokeWidth") != before

    def test_to_a_lane_that_is_switched_off(self, watched: Watched) -> None:
        page = watched.page
        page.locator("#g1-witness-figure").get_by_text("Registry", exact=True).click()
        overlap = row(page, 0).locator(".lane-effect .overlap")
        expect(overlap).to_be_hidden()
        page.locator("#g1-witness-card-1").get_by_text("Show it in the picture").click()
        expect(overlap).to_be_visible()
        expect(overlap).to_be_in_viewport()

    def test_from_the_overlap_to_its_card_by_keyboard(self, watched: Watched) -> None:
        page = watched.page
        row(page, 0).locator(".lane-belief a").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#g1-witness-card-0")).to_be_in_viewport()
        assert page.url.endswith("#g1-witness-card-0")

    def test_into_what_is_folded(self, page: Page, tmp_path: Path) -> None:
        case = case_with_sister()
        (tmp_path / "report.html").write_text(render(case.analysis, case.histories), encoding="utf-8")
        page.goto((tmp_path / "report.html").as_uri())
        card = page.locator("#g1-sister-card-0")
        expect(card).to_be_hidden()
        page.evaluate("location.hash = 'g1-sister-card-0'")
        expect(card).to_be_visible()
        expect(card).to_be_in_viewport()

    def test_from_the_verdict_to_the_trial(self, watched: Watched) -> None:
        watched.page.locator(".verdicts").get_by_text("show", exact=True).click()
        expect(watched.page.locator("#g1-witness-title")).to_be_in_viewport()

    def test_the_replay_command_is_copied_or_selected(self, watched: Watched) -> None:
        page = watched.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        button = page.locator("#g1-witness-card-0 button.copy")
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == "rebalance-lab replay zombie-s7 --store trials"


#: Contrast of an element's text with what is painted behind it, as WCAG counts it.
CONTRAST = """element => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const bright = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const style = getComputedStyle(element);
  const text = element instanceof SVGElement ? style.fill : style.color;
  let behind = null;
  for (let at = element; at && !behind; at = at.parentElement) {
    const colour = parse(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) behind = colour;
  }
  const [low, high] = [bright(parse(text)), bright(behind)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""

TEXTS = (
    "h1", ".lead", ".kicker", ".muted", "thead th", "tbody td", ".chip-surprise", ".chip-reproduced", ".chip-unknown",
    ".chip-violated", ".chip-clean", "summary", ".story li", ".legend li", "figcaption", ".row-label", ".lane-label",
    ".ticks text", ".mark-label-fault", ".mark-label-session", ".mark-label-closing", ".card .kicker", ".facts dt",
    ".card a", ".tag", ".steps td:nth-child(5)", ".replay code", ".copy", ".views input:checked + span",
    ".views input:not(:checked) + span", "footer p",
)  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(watched: Watched, scheme: str) -> None:
    watched.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    ground = watched.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") is (scheme == "light")
    contrasts = {text: watched.page.locator(text).first.evaluate(CONTRAST) for text in TEXTS}
    assert {text: round(contrast, 2) for text, contrast in contrasts.items() if contrast < 4.5} == {}


@pytest.mark.parametrize("width", [1600, 1280, 800, 390])
@pytest.mark.parametrize("partitions", [6, 8, 60])
def test_the_page_fits(page: Page, page_file: Callable[[int], str], partitions: int, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(page_file(partitions))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rows = boxes_of(page, "#g1-witness-figure .row-label")
    assert len(rows) == partitions
    assert all(upper[3] <= lower[1] + 4 for upper, lower in pairwise(rows))  # a line's own space may touch, letters not
    left, top, right, bottom = boxes_of(page, "#g1-witness-figure svg.gantt")[0]
    assert top <= rows[0][1]
    assert rows[-1][3] <= bottom
    for x0, y0, x1, y1 in boxes_of(page, "#g1-witness-figure .box"):
        assert left <= x0 <= x1 <= right + 1
        assert top <= y0 <= y1 <= bottom


def test_paper_shows_the_picture_and_no_buttons(watched: Watched) -> None:
    watched.page.emulate_media(media="print", color_scheme="dark")
    expect(watched.page.locator(".views").first).to_be_hidden()
    expect(watched.page.locator("button.copy").first).to_be_hidden()
    expect(watched.page.locator("svg.gantt").first).to_be_visible()
    assert watched.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
