"""Java's regular expressions: Java's own answers, and what is refused by name."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.wire.errors import InvalidFilter, KafkaException, UnsupportedFilter
from rebalance_lab.wire.java_regex import InvalidPattern, UnknownConstruct, java_pattern
from rebalance_lab.wire.json_text import escaped
from rebalance_lab.wire.topic_filter import MATCHING_LIMIT_S, compiled_filter, matching, normal_filter

#: pattern, name, answer of OpenJDK 17 (JavaRegexAnswers.java).
ANSWERS = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "java_regex_answers.tsv").read_text("utf-8").split("\n")[:-1]
]


def test_the_answers_are_javas() -> None:
    wrong = []
    for pattern, name, answer in ANSWERS:
        try:
            found = str(java_pattern(pattern).fullmatch(name) is not None).lower()
        except InvalidPattern:
            found = "INVALID"
        if found != answer:
            wrong.append((pattern, name, answer, found))
    assert wrong == []
    assert {answer for _, _, answer in ANSWERS} == {"true", "false", "INVALID"}
    assert len(ANSWERS) > 300


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[a&&b]", r"an intersection of classes \(&&\)"),
        ("[a[b]]", "a class within a class"),
        ("[a-[b]]", "a class within a class"),
        ("[\\P{Alpha}]", "negated"),
        ("\\p{L}", r"the class \\p\{L\}"),
        ("\\pL", r"the class \\p\{L\}"),
        ("\\h", r"\\h"),
        ("\\R", r"\\R"),
        ("(?x)a b", "the flag x"),
        ("(?U)a", "the flag U"),
        ("a(?i)b", "flags that are set in the middle"),
        ("a{2}{3}", "a quantifier upon a quantifier"),
        ("{2}", "a repetition of nothing"),
        ("(a)\\11", "several digits"),
        ("(?<=a{1,2})b", "fixed-width"),
        ("^*a", "nothing to repeat|multiple repeat"),
        ("a{30000}b{30000}", "repetitions of more than 50000 characters"),
        ("((a{1000}){1000}){1000}", "repetitions of more than 50000 characters"),
    ],
)
def test_what_java_knows_and_the_lab_does_not_is_named(text: str, what: str) -> None:
    with pytest.raises(UnknownConstruct, match=what):
        java_pattern(text)


@given(st.text(alphabet="ab(|)[]^$*+?{}\\dpk<>:=!,-&012.", max_size=12), st.sampled_from(["", "a", "ab", "bb0", "(a"]))
def test_a_group_around_all_changes_nothing_and_nothing_else_is_raised(text: str, name: str) -> None:
    try:
        pattern = java_pattern(text)
    except (InvalidPattern, UnknownConstruct):
        return
    grouped = java_pattern(f"(?:{text})")
    assert (pattern.fullmatch(name) is None) == (grouped.fullmatch(name) is None)


@given(st.text(min_size=1, max_size=20))
def test_quoted_text_is_itself(name: str) -> None:
    if "\\E" not in name and not name.endswith("\\"):
        assert java_pattern(f"\\Q{name}\\E").fullmatch(name) is not None


@pytest.mark.parametrize("text", ["a{2147483647}", "a{40000,}", "(?:ab){20000}", "x|(a{10000}){0}a{32768}"])
def test_a_repetition_beyond_the_longest_name_matches_none(text: str) -> None:
    pattern = java_pattern(text)
    assert pattern.fullmatch("a" * 300) is None
    assert (pattern.fullmatch("x") is not None) is text.startswith("x")


@pytest.mark.parametrize("text", ["(a|a)*[bc]", "(.|a)*\\d", "((a|a)(a|a))*[bc]"])
def test_a_filter_that_takes_for_ever_is_given_up(text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(UnsupportedFilter, match="was not evaluated within 1 s"):
        matching(text, ["a", "b" * 70, "a" * 70])
    assert time.process_time() - began_s < 3 * MATCHING_LIMIT_S


def test_the_limit_is_for_all_topics_together() -> None:
    slow = [f"{'a' * 17}{each}" for each in range(10_000)]
    with pytest.raises(UnsupportedFilter, match="was not evaluated within 1 s"):
        matching("(a|a)*[bc]", slow)
    assert matching("a+7", slow) == {"a" * 17 + "7"}


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        (" a, b ", "a|b"),
        ("'a,b'", "a|b"),
        ("\"'a'\"", "a"),
        ("a'b", "a'b"),
        ("\t a\tb \r\n", "a\tb"),  # only blanks go from the middle
        ("\u00a0a", "\u00a0a"),  # nor does Java trim blanks that it does not know
        ("", ""),
    ],
)
def test_filters_are_normalised_as_kafka_does(raw: str, normal: str) -> None:
    assert normal_filter(raw) == normal


def test_a_filter_that_java_refuses_is_refused_with_kafkas_text() -> None:
    with pytest.raises(InvalidFilter) as caught:
        compiled_filter(" (a, b ")
    assert str(caught.value) == "(a|b is an invalid regex."


def test_a_filter_that_only_java_knows_is_refused_in_words() -> None:
    with pytest.raises(UnsupportedFilter) as caught:
        compiled_filter("[a-z&&[^b]]+")
    assert isinstance(caught.value, KafkaException)
    assert str(caught.value) == (
        "the topic filter [a-z&&[^b]]+ uses an intersection of classes (&&), which Java's regular expressions know "
        "and the lab's do not; write it in another way"
    )


def test_escapes_are_kafkas() -> None:
    assert escaped('a"\\/\b\f\n\r\t\x00\x1f\x7f\x9f\xa0é') == (
        'a\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\\u009f\xa0é'
    )


@given(st.text())
def test_escapes_come_back(text: str) -> None:
    assert json.loads(f'"{escaped(text)}"') == text
