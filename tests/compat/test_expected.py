"""The list of librdkafka's tests: how it is read, and the table in the docs that sums it up. Where they come from."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from expected import FILE, Expected, Verdict, expected, scenarios
from librdkafka_build import mirrors

DOCS = Path(__file__).parents[2] / "docs" / "broker.md"


def test_a_line_is_a_verdict_and_a_reason() -> None:
    assert expected("# all\n\n0001_a pass\n0002_b group it subscribes\n") == {
        "0001_a": Expected("0001_a", Verdict.PASS, ""),
        "0002_b": Expected("0002_b", Verdict.GROUP, "it subscribes"),
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0001_a group", "every other needs one"),
        ("0001_a pass really", "needs no reason"),
        ("0001_a pass\n0001_a pass", "two lines"),
        ("0001_a perhaps", "'perhaps' is not a valid Verdict"),
    ],
)
def test_a_line_that_says_nothing_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        expected(text)


def test_the_tests_and_their_scenarios_are_read_from_the_source() -> None:
    source = """
struct test tests[] = {
    {.name = "<MAIN>"},
    _TEST(0001_a, 0),
    _TEST(0002_b,
          TEST_F_KNOWN_ISSUE,
          .scenario = "noautocreate"),
    _TEST(0003_c, 0, .scenario = "default,ak23"),
    {NULL}
};
"""
    assert scenarios(source) == {"0001_a": "default", "0002_b": "noautocreate", "0003_c": "default"}


def test_the_docs_count_the_verdicts() -> None:
    counted = Counter(each.verdict.value for each in expected(FILE.read_text()).values())
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", DOCS.read_text(), re.MULTILINE)
    assert {name: int(number) for name, number in rows if name in {each.value for each in Verdict}} == counted


def test_the_mirrors_of_a_release_are_those_that_apt_asks() -> None:
    printed = """
'http://mirror.example/debian/dists/bookworm/InRelease' mirror.example_debian_dists_bookworm_InRelease 0
'http://mirror.example/debian/dists/bookworm-updates/InRelease' mirror.example_debian_dists_bookworm-updates_InRelease 0
'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' mirror.example_Packages 0
"""
    assert mirrors(printed, "bookworm") == ["http://mirror.example/debian"]
    assert mirrors(printed, "trixie") == []
