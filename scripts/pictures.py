"""Make the pictures of the README, the book and docs/truncation.md: `python scripts/pictures.py [PICTURE …]`.

Without names it makes all of them. The script runs the trials, writes their report pages, and takes screenshots of
parts of these with Playwright and Debian's Chromium, 1,280 pixels wide. Every trial has a fixed seed, so the pictures
are always the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
EXAMPLES_FOLDER = IMAGES.parent.parent / "examples"
LAB = Path(sys.executable).with_name("rebalance-lab")

#: Picture -> its page, and the first and last element that it shows.
PICTURES = {
    "readme.png": ("zombie", "#t-story", "#t-figure"),
    "zombie.png": ("zombie", "#t-figure", "#t-spacetime"),
    "split-brain.png": ("split-brain", "#t-figure", "#t-spacetime"),
    "uncontrolled.png": ("uncontrolled", "#t-figure", "#t-spacetime"),
    "leader-dies.png": ("leader-dies", "#t-figure", "#t-replicas"),
    "all-down-wait.png": ("all-down-wait", "#t-figure", "#t-replicas"),
    "all-down-unclean.png": ("all-down-unclean", "#t-figure", "#t-replicas"),
    "last-replica.png": ("last-replica", "#t-figure", "#t-replicas"),
    "truncation.png": ("truncation", "#t-figure", "#t-replicas"),
    "truncation-alone.png": ("alone", "#t-figure", "#t-replicas"),
    "truncation-late-order.png": ("late-order", "#t-figure", "#t-replicas"),
    "truncation-missed-epoch.png": ("missed-epoch", "#t-figure", "#t-replicas"),
    "controllers.png": ("controllers", "#t-figure", "#t-figure"),
    "zombie-controller.png": ("zombie-controller", "#t-figure", "#t-spacetime"),
    "duty.png": ("duty", "#t-spacetime", "#t-spacetime"),
    "herd.png": ("herds", "#figure-cost-reads", "#figure-cost-reads"),
}
#: The trial of each page: its scenario and settings. Only `herds` is the page of a store.
TRIALS = {
    "zombie": ("zombie",),
    "split-brain": ("split-brain",),
    "uncontrolled": ("uncontrolled",),
    "leader-dies": ("isr-election",),
    "all-down-wait": ("all-replicas-down",),
    "all-down-unclean": ("all-replicas-down", "--set", "unclean=true"),
    "last-replica": ("last-replica-standing",),
    "truncation": ("truncation", "--rules", "high-watermark"),
    "alone": ("truncation", "--rules", "kip-101", "--set", "schedule=alone", "--set", "unclean=true"),
    "late-order": ("truncation", "--rules", "kip-279", "--set", "schedule=late-order", "--set", "idempotent=true"),
    "missed-epoch": ("truncation", "--set", "schedule=missed-epoch", "--set", "request_timeout_ms=20000"),
    "controllers": ("controller-race",),
    "zombie-controller": ("zombie-controller", "--set", "form=1.1"),
    "duty": ("duties", "--set", "duty=delete-topic", "--set", "kill_at=9"),
}
#: Picture -> the example that draws it, as an SVG file of the picture's name.
EXAMPLES = {"spread.png": "placement_spread.py", "kills.png": "every_kill.py"}
HERDS = ("members=4,8,16,32,64,128,200", "partitions=64")
MARGIN = 14


def lab(*arguments: object) -> None:
    """Run a command of the lab. The exit codes 1 and 2 are verdicts on its trials and not failures."""
    ended = subprocess.run([LAB, *map(str, arguments)], stdout=subprocess.DEVNULL, check=False)
    if ended.returncode not in {0, 1, 2}:
        raise SystemExit(f"rebalance-lab {' '.join(map(str, arguments))} ended with {ended.returncode}")


def write_pages(folder: Path, pages: Collection[str]) -> None:
    """Write these pages: of a trial each, and one for herds of many sizes."""
    for page, arguments in TRIALS.items():
        if page not in pages:
            continue
        store = folder / "trials" / page
        lab("run", *arguments, "--seed", 1, "--store", store)
        (trial,) = (each for each in store.iterdir() if (each / "trial.json").exists())
        lab("report", trial, "--out", folder / f"{page}.html")
    if "herds" not in pages:
        return
    for rules in ("described", "shipped"):
        settings = [word for setting in HERDS for word in ("--set", setting)]
        lab("sweep", "herd", "--rules", rules, *settings, "--seeds", 1, "--store", folder / "herds")
    lab("report", folder / "herds", "--no-pages", "--out", folder / "herds.html")


def draw(page: Page, folder: Path, picture: str) -> None:
    """Run the example of a picture, and save what it draws."""
    script = EXAMPLES_FOLDER / EXAMPLES[picture]
    subprocess.run([sys.executable, script], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    page.goto((folder / picture).with_suffix(".svg").as_uri())
    page.locator("svg").first.screenshot(path=IMAGES / picture)


def take(page: Page, out: Path, first: str, last: str) -> None:
    """Save the part of the page from one element to another."""
    page.wait_for_load_state("load")
    boxes = [page.locator(each).first.bounding_box() for each in (first, last)]
    shown = [box for box in boxes if box is not None]
    if len(shown) < len(boxes):
        raise SystemExit(f"{page.url} lacks the element {first} or {last}")
    left = max(min(box["x"] for box in shown) - MARGIN, 0)
    top = max(shown[0]["y"] - MARGIN, 0)
    width = max(box["x"] + box["width"] for box in shown) + MARGIN - left
    height = shown[-1]["y"] + shown[-1]["height"] + MARGIN - top
    page.screenshot(path=out, full_page=True, clip={"x": left, "y": top, "width": width, "height": height})


def main(names: Collection[str]) -> int:
    unknown = [each for each in names if each not in PICTURES and each not in EXAMPLES]
    if unknown:
        print(f"there is no picture {unknown[0]}; there are: {', '.join((*PICTURES, *EXAMPLES))}", file=sys.stderr)
        return 2
    wanted = {picture: shown for picture, shown in PICTURES.items() if not names or picture in names}
    chromium = shutil.which("chromium")
    if chromium is None:
        print("pictures need Debian's Chromium: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_pages(folder, {shown for shown, _, _ in wanted.values()})
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(
            viewport={"width": 1280, "height": 900},
            device_scale_factor=1.5,
            color_scheme="light",
            reduced_motion="reduce",
        )
        for picture, (shown, first, last) in wanted.items():
            page.goto((folder / f"{shown}.html").as_uri())
            take(page, IMAGES / picture, first, last)
            print(IMAGES / picture)
        for picture in [each for each in EXAMPLES if not names or each in names]:
            draw(page, folder, picture)
            print(IMAGES / picture)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
