"""What is expected of each of librdkafka's tests: `librdkafka_tests.txt`, one line for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

FILE = Path(__file__).with_name("librdkafka_tests.txt")


class Verdict(Enum):
    """Passes, or why not: mostly what a test asks for that is not there."""

    PASS = "pass"
    LOCAL = "local"
    GROUP = "group"
    TRANSACTION = "transaction"
    SECURITY = "security"
    FEATURE = "feature"
    KAFKA = "kafka"
    SKIPPED = "skipped"


#: These show nothing of the broker, so they are not run.
NOT_RUN = {Verdict.LOCAL, Verdict.SKIPPED}


@dataclass(frozen=True, slots=True)
class Expected:
    """`why`: the reason; empty if it passes."""

    name: str
    verdict: Verdict
    why: str

    @property
    def number(self) -> str:
        """By which the runner finds it. Some share one."""
        return self.name.partition("_")[0]


def expected(text: str) -> dict[str, Expected]:
    """By name. Raises ValueError for a line that is not understood, or a test with two lines."""
    found: dict[str, Expected] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, verdict, *why = line.split(maxsplit=2)
        each = Expected(name, Verdict(verdict), why[0] if why else "")
        if (each.verdict is Verdict.PASS) == bool(each.why):
            raise ValueError(f"{name}: a test that passes needs no reason, and every other needs one")
        if name in found:
            raise ValueError(f"{name} has two lines")
        found[name] = each
    return found


def scenarios(source: str) -> dict[str, str]:
    """All tests that `test.c` names, and the first scenario that each asks for: the settings of its cluster."""
    found = {}
    for entry in source.split("\n    _TEST(")[1:]:
        name = entry.partition(",")[0]
        asked = re.search(r'\.scenario = "(\w+)', entry.partition("\n};")[0])
        found[name] = asked[1] if asked else "default"
    return found
