"""Words and numbers as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from rebalance_lab.history import durations
from rebalance_lab.report.spans import Row

#: Stands in a mark's verb where its partitions go; they follow it otherwise.
ROWS = "{}"


def seconds(length_us: int) -> str:
    """A length of time: `2.83 s`; below 0.1 s `99 ms`; below 1 ms as `history.durations` writes it; `0 s`."""
    if length_us == 0:
        return "0 s"
    if length_us < 1000:
        return durations.seconds(length_us)
    if length_us < 100_000:
        return f"{length_us / 1000:.0f} ms"
    return f"{length_us / 1_000_000:.2f} s"


def moment(at_us: int) -> str:
    """A moment, in seconds from the trial's start: `5.53 s`."""
    return f"{at_us / 1_000_000:.2f} s"


def exact_moment(at_us: int) -> str:
    """A moment to the microsecond, for tables of events: `5.534210`."""
    return f"{at_us / 1_000_000:.6f}"


def count(number: int, singular: str, plural: str | None = None) -> str:
    """`1 partition`, `6 partitions`, `1,000 trials`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def times(number: int) -> str:
    """`once`, `twice`, `12 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def shortened(text: str, letters: int = 260) -> str:
    """A text of at most so many letters, with an ellipsis if it is cut."""
    return text if len(text) <= letters else f"{text[: letters - 2].rstrip()} …"


#: A consumer id: GROUP_HOST-MILLISECONDS-HEX.
_ID = re.compile(r"[\w.-]*?_(?:host-)?([\w.-]+?)-\d{13}-[0-9a-f]{1,8}")

_UNIT = re.compile(r"(\d) (s|ms|µs)\b")


def without_ids(text: str) -> str:
    """A text with the hosts' names in place of consumer ids, for use without a history."""
    return _ID.sub(r"\1", text)


def glued(text: str) -> str:
    """A text in which no line breaks between a number and its unit."""
    return _UNIT.sub("\\1\u00a0\\2", text)


def listed(words: Sequence[str], *, at_most: int = 6) -> str:
    """`m1, m2 and m3`; the rest after `at_most` is counted: `m1, m2, … (40 in all)`."""
    if not words:
        return "none"
    if len(words) == 1:
        return words[0]
    if len(words) > at_most:
        return f"{', '.join(words[: at_most - 1])}, … ({len(words):,} in all)"
    return f"{', '.join(words[:-1])} and {words[-1]}"


def members_named(names: Sequence[str]) -> str:
    """`m1`, `m1, m2 and m3`; runs of numbers are joined: `m1 to m8 and m11`."""
    if len(names) <= 3:
        return listed(names)
    stems: dict[str, list[int]] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        if stem == name:
            return listed(names)
        stems.setdefault(stem, []).append(int(name[len(stem) :]))
    parts = []
    for stem, numbers in stems.items():
        for run in _runs(numbers):
            first, last = f"{stem}{run[0]}", f"{stem}{run[1]}"
            parts += [first] if first == last else [first, last] if run[1] == run[0] + 1 else [f"{first} to {last}"]
    return listed(parts)


def _runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of numbers without a gap."""
    runs: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def starting(sentence: str) -> str:
    """A capital first letter, except in a node's name."""
    first, _, rest = sentence.partition(" ")
    return sentence if any(letter.isdigit() for letter in first) else f"{first[:1].upper()}{first[1:]} {rest}"


def partition_ranges(numbers: Iterable[int]) -> str:
    """Partition numbers with runs joined: `0–2, 5`."""
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in _runs(numbers))


def partitions_named(rows: Iterable[Row]) -> str:
    """Partitions, grouped by topic: `t1/0–2 and t2/4`."""
    topics: dict[str, list[int]] = {}
    for row in sorted(rows):
        topics.setdefault(row.topic, []).append(row.partition)
    return listed([f"{topic}/{partition_ranges(numbers)}" for topic, numbers in topics.items()])


def coded(text: str) -> Markup:
    """HTML of a text in which backticks mark code; everything else is escaped."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one backtick without its partner: a plain sign
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )
