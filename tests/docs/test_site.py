"""The documentation site (`make docs`): it builds without a warning, has every page, and loads nothing from outside."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rebalance_lab
import zkconsumer
from rebalance_lab.checks import CHECKS
from rebalance_lab.trials.scenario import scenario_names

ROOT = Path(__file__).parents[2]

#: What a browser would fetch by itself: not the links that a reader may follow.
LOADED = re.compile(r"<(?:script|img|iframe|link|source|video)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return folder


def html(page: Path) -> str:
    return page.read_text("utf-8")


def test_every_page_is_in_the_navigation(site: Path) -> None:
    start = html(site / "index.html")
    linked = set(re.findall(r'href="([^"#:]+\.html)"', start)) | {"index.html"}
    pages = {str(each.relative_to(site)) for each in site.rglob("*.html")} - {"404.html"}
    assert pages - linked == set()
    sources = {
        str(each.relative_to(ROOT / "docs").with_suffix(".html")).replace("README", "index")
        for each in (ROOT / "docs").rglob("*.md")
    }
    assert sources - pages == set()


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    assert {url for page in site.rglob("*.html") for url in LOADED.findall(html(page))} == set()
    styles = "".join(html(each) for each in site.rglob("*.css"))
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", styles) == []


def test_a_reader_sees_no_markup(site: Path) -> None:
    """Lists, fences and tables that Markdown did not take for such."""
    for page in site.rglob("*.html"):
        plain = re.sub(r"<(pre|code)\b.*?</\1>", "", html(page), flags=re.DOTALL)
        assert re.findall(r"<p>(?:- |\d\. |\||```)[^<]*|\n(?:- |\|)[^<]*</p>|```", plain) == [], page.name


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("checks", list(CHECKS)),
        ("scenarios", scenario_names()),
        ("rebalance_lab", rebalance_lab.__all__),
        ("zkconsumer", zkconsumer.__all__),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_reference_is_whole(site: Path, title: str, names: list[str]) -> None:
    ids = re.findall(r'<h[23] id="([^"]+)"', html(site / "reference" / f"{title}.html"))
    told = {each.rpartition(".")[2] for each in ids}
    assert set(names) - told == set()
