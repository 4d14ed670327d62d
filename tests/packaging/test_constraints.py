"""constraints.txt pins everything the project needs, and nothing but names and versions."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def pins() -> dict[str, str]:
    lines = (PROJECT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def test_every_package_needed_is_pinned() -> None:
    spec = importlib.util.spec_from_file_location("pins", PROJECT / "scripts" / "pins.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    needed = module.closure()
    assert {"pyspark", "kazoo", "pytest", "ruff", "numpy"} <= set(needed)
    assert set(needed) <= set(pins()), "run `make pins` after a change of dependencies"


def test_pins_are_exact_and_sorted() -> None:
    names = list(pins())
    assert names == sorted(names)
    for name, version in pins().items():
        assert re.fullmatch(r"[a-z0-9-]+", name)
        assert re.fullmatch(r"[0-9][0-9a-z.]*", version)
