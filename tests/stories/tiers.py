"""Which test files a run of one tier looks at. The import of all of them takes ten seconds of CPU time, and of those of
one tier a third of that at most."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]

#: Each is the name of a marker; the default tier has none.
TIERS = ("browser", "cluster", "compat", "docker", "kafka", "slow")


@cache
def tiers_named_in(file: Path) -> frozenset[str]:
    """The tiers whose marker a file names; none if there is no such file."""
    text = file.read_text("utf-8") if file.exists() else ""
    return frozenset(re.findall(rf"\bmark\.({'|'.join(TIERS)})\b", text))


def may_hold(file: Path, tier: str) -> bool:
    """Whether tests of a tier can be in a file: it names the marker, or a conftest.py in its folder or in one above it
    does, except that of all tests."""
    folders = [each for each in file.parents if each.is_relative_to(TESTS) and each != TESTS]
    return any(tier in tiers_named_in(each) for each in (file, *(folder / "conftest.py" for folder in folders)))
