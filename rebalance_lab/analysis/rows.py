"""Rows of Spark's tables as the classes of `results`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from rebalance_lab.analysis.results import (
    Episode,
    Fit,
    Frequency,
    HerdCost,
    Interval,
    Summary,
    TrialMeasures,
    TrialOutcome,
    Verdict,
)
from rebalance_lab.analysis.store import Store
from rebalance_lab.history.events import EventId
from rebalance_lab.history.files import replay_command

Row = dict[str, Any]
T = TypeVar("T")

FIT_ORDER = ("scenario", "world", "rules", "change", "measure", "model")
SUMMARY_ORDER = ("scenario", "world", "rules", "control", "plant", "settings", "measure")


def sorted_rows(make: Callable[[Row], T], found: Iterable[Row], *columns: str) -> tuple[T, ...]:
    """The rows as `make` has them, by these columns; what is None comes first."""
    return tuple(make(row) for row in sorted(found, key=lambda row: _key(row, columns)))


def _key(row: Row, columns: tuple[str, ...]) -> list[tuple[bool, Any]]:
    values = [row[column] for column in columns]
    values = [[tuple(each.values()) for each in value] if isinstance(value, list) else value for value in values]
    return [(value is not None, value) for value in values]


def _id(row: Row) -> EventId:
    return (row["actor"], row["n"])


def verdict(row: Row, store: Store) -> Verdict:
    witness = row["witness"]
    same = (
        *("claim", "reading", "statement", "quantifier", "expected", "by_construction"),
        *("verdict", "status", "live", "simulated", "why"),
    )
    return Verdict(
        **{name: row[name] for name in same},
        witness=witness,
        replay=None if witness is None else replay_command(store.folders[witness]),
        frequencies=tuple(Frequency(**each) for each in row["frequencies"]),
        fits=tuple(fit(each) for each in row["fits"]),
    )


def outcome(row: Row) -> TrialOutcome:
    same = ("trial", "scenario", "world", "rules", "seed", "control", "plant", "check", "outcome", "why")
    return TrialOutcome(
        **{name: row[name] for name in same},
        witness=tuple(_id(each) for each in row["witness"]),
        longest_us=row["longest_us"],
        count=row["count"],
    )


def interval(row: Row) -> Interval:
    end = None if row["end"] is None else _id(row["end"])
    return Interval(**{**row, "begin": _id(row["begin"]), "end": end})


def measures(row: Row) -> TrialMeasures:
    return TrialMeasures(**row)


def episode(row: Row) -> Episode:
    return Episode(**row)


def herd_cost(row: Row) -> HerdCost:
    return HerdCost(**row)


def fit(row: Row) -> Fit:
    return Fit(**{**row, "coefficients": tuple(row["coefficients"])})


def summary(row: Row) -> Summary:
    settings = tuple((each["name"], each["value"]) for each in row["settings"])
    return Summary(**{**row, "settings": settings})
