"""Large groups: what is drawn row by row, and the census of all."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from pathlib import Path

import pytest
from crowd_story import END_S, GAP, OVERLAP, crowd
from page_tree import Node, Tree

from rebalance_lab.analysis.trialwise.rows import intervals_of
from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.report.bands import Scale
from rebalance_lab.report.census import BINS, most_at_once
from rebalance_lab.report.focus import ROWS_PICKED, focus_on
from rebalance_lab.report.raster import CLEAR, png
from rebalance_lab.report.scene import Scene, build_scene
from rebalance_lab.report.trial_page import render_trial


def scene_of(members: int) -> Scene:
    history = crowd(members)
    return build_scene(history, intervals_of(history))


@pytest.fixture(scope="module")
def tree() -> Node:
    return Tree(render_trial(crowd(200), Path("trials/crowd"))).root


def test_a_small_group_is_drawn_whole() -> None:
    focus = focus_on(scene_of(8))
    assert (len(focus.rows), focus.left_out) == (8, 0)


def test_of_a_large_one_the_rows_that_matter() -> None:
    scene = scene_of(200)
    witness = [event.id for event in scene.events if event.kind is Kind.OWNED and event.partition == 113]
    focus = focus_on(scene, witness)
    assert (len(focus.rows), focus.left_out) == (ROWS_PICKED, 200 - ROWS_PICKED)
    # the witness's, the overlap's, the gap's
    assert {113, 0, 7} <= {row.partition for row in focus.rows}


def test_the_page_says_what_it_leaves_out(tree: Node) -> None:
    (figure,) = tree.all("figure", id="t-figure")
    assert len(figure.all("g", class_="row")) == ROWS_PICKED
    assert f"of which {ROWS_PICKED} are drawn here" in figure.all("figcaption")[0].text
    assert len(tree.all("g", class_="picture")) == 1


def test_the_overlap_and_the_gap_are_among_the_rows(tree: Node) -> None:
    drawn = {}
    for kind in ("overlap", "unowned"):
        boxes = [
            box for box in tree.all("rect", class_=kind) if box.above("g").attributes["class"] == "lane lane-belief"
        ]
        drawn[kind] = {
            (box.above("g").above("g").attributes["data-partition"],
             int(box.attributes["data-begin-us"]) / 1e6, int(box.attributes["data-end-us"]) / 1e6)
            for box in boxes
        }  # fmt: skip
    assert drawn["overlap"] == {("0", *OVERLAP)}
    assert ("7", *GAP) in drawn["unowned"]


def test_the_census_counts_all_rows(tree: Node) -> None:
    strips = {strip.attributes["class"]: strip for strip in tree.all("g", class_="strip")}
    assert strips["strip strip-belief"].attributes["data-most-several"] == "1"
    assert strips["strip strip-registry"].attributes["data-most-several"] == "0"
    assert strips["strip strip-belief"].all("title")[0].text == (
        "belief: of 200 partitions, at worst 1 with several owners at once and 1 with none"
    )


def test_the_members_picture_is_a_png_with_the_double_owner_in_red(tree: Node) -> None:
    (image,) = tree.all("image")
    body = b64decode(image.attributes["href"].removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", body[16:24])
    assert (width, height) == (BINS, 200)
    start = body.index(b"IDAT")
    length = struct.unpack(">I", body[start - 4 : start])[0]
    pixels = zlib.decompress(body[start + 4 : start + 4 + length])
    line = 1 + 4 * width
    middle = int(BINS * sum(OVERLAP) / 2 / END_S)
    colours = [tuple(pixels[member * line + 1 + 4 * middle :][:3]) for member in range(3)]
    red = (211, 20, 58)
    assert colours[:2] == [red, red]
    assert colours[2] != red


def test_five_sentences_name_a_crowd_by_its_ends(tree: Node) -> None:
    story = [item.text for item in tree.all("div", class_="story")[0].all("li")]
    assert story[0].startswith("m1 to m200 share 200 partitions on a real ZooKeeper")
    assert len(story) <= 5


def test_most_at_once_counts_moments_not_bins() -> None:
    scale = Scale(0, BINS * 10, 0, BINS)
    one_after_another = most_at_once([(0, 4), (4, 8)], scale)
    assert one_after_another[0] == 1
    assert most_at_once([(0, 6), (4, 8)], scale)[0] == 2
    assert sum(one_after_another) == 1


def test_ragged_pictures_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of one length"):
        png([[CLEAR], [CLEAR, CLEAR]])
    with pytest.raises(ValueError, match="there are 0 rows"):
        png([])


def test_a_member_whose_start_is_missing_has_a_lane() -> None:
    """m9 owns a partition of a group of eight: its file was cut off before it began."""
    page = Tree(render_trial(crowd(8), Path("trials/crowd"))).root
    assert any(title.text.endswith(", m9") for title in page.all("title"))


def test_layers_keep_their_overlaps_apart() -> None:
    scene = scene_of(20)
    assert [overlap.layer for overlap in scene.overlaps] == [Layer.BELIEF]
