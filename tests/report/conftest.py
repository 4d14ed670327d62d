"""Debian's Chromium, and pages to open in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from zombie_story import zombie_case

from rebalance_lab.report.page import render


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    """Debian's Chromium, without a word to the network."""
    path = shutil.which("chromium")
    if path is None:
        reason = "Chromium is missing: apt-get install chromium"
        if os.environ.get("REBALANCE_LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    quiet = ("quic", "gpu", "sync", "background-networking", "component-update")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{what}" for what in quiet)]
    return {**browser_type_launch_args, "executable_path": path, "args": flags, "headless": True}


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], str]:
    """Writes the zombie's page for a number of partitions; gives its address on disk."""
    folder = tmp_path_factory.mktemp("pages")

    def write_page(partitions: int) -> str:
        path: Path = folder / f"report-{partitions}.html"
        case = zombie_case(partitions=partitions)
        path.write_text(render(case.analysis, case.histories), encoding="utf-8")
        return path.as_uri()

    return write_page
