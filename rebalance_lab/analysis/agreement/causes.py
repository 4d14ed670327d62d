"""The causes that may explain a difference between live and simulated trials. Each is declared in `causes.toml`, before
any trial, with its sign and its largest size. A larger difference is not explained.

The simulator includes only the time between a member and the server (parameters `latency_min_us` and `latency_max_us`,
which stand for the live network) and the time in which a process starts (`start_min_us`, `start_max_us`). It has no
processor, disk or garbage collection. So live times are longer, and how much longer depends on what was done in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, comb
from pathlib import Path

import msgspec

from rebalance_lab.analysis.agreement.measures import Family, Measure, Unit, Work, number
from rebalance_lab.analysis.agreement.statistics import TOLERATED, Band


class Live(StrEnum):
    """What is compared with the simulator: the lab's members as processes, or real 0.8.2.2 consumers."""

    PROCESSES = "processes"
    REAL = "real"


class Size(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most by which a cause may change a value: the sum of a fixed part and of parts for each thing that the
    simulated trials did in the time that is measured. `attempt_percent`: the share of attempts that each change a count
    by one. This happens by chance, so the count may change by a number that three trials of four do not exceed
    (binomial); the verdict tolerates the fourth. `ticks`: of the server, once. `finder_rounds`: rounds of a leader
    finder, 1 + B reads each, for each member that left in the step in which it started."""

    once_us: int = 0
    operation_us: int = 0
    write_us: int = 0
    start_us: int = 0
    attempt_percent: int = 0
    ticks: int = 0
    finder_rounds: int = 0

    def of(self, work: Work, parameters: Mapping[str, object]) -> int:
        """The size for a measure: in µs for a time (for one partition if it is a partition-time), or a number for a
        count."""
        return (
            self.once_us
            + 1000 * self.ticks * number(parameters, "tick_ms")
            + self.finder_rounds * work.short_stays * (1 + number(parameters, "brokers"))
            + self.operation_us * work.operations
            + self.write_us * work.writes
            + self.start_us * work.starts
            + _upper_quartile(work.attempts, self.attempt_percent / 100)
        )


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`families`: the measures that it may change. `later`, `earlier`: by how much live values may be above and below
    simulated ones. `live`: for which members it holds. `repeats`: it changes only the values of trials in which more
    attempts failed than in the median simulated trial: times by a back-off for each such attempt, and counts of
    requests by those of an attempt."""

    name: str
    why: str
    families: frozenset[Family]
    later: Size = Size()
    earlier: Size = Size()
    live: frozenset[Live] = frozenset(Live)
    repeats: bool = False


#: All declared causes: `causes.toml`.
CAUSES: tuple[Cause, ...] = msgspec.toml.decode(
    Path(__file__).with_suffix(".toml").read_bytes(), type=dict[str, tuple[Cause, ...]]
)["cause"]

#: Measures that one more cause may change, which has no fixed size. If operations take longer, more changes come
#: between two reads of a list and cause only one notification and one rebalance. How many depends on the schedule, so
#: it is simulated, with a latency that makes the average operation as long as the average live one.
SLOWED = frozenset({Family.COUNT, Family.ATTEMPTS, Family.REQUESTS})


@dataclass(frozen=True, slots=True)
class Explained:
    """The causes that apply to a measure, and how far they change it together: by `band` in every trial, and by
    `attempt` more for each failed attempt that a live trial had in addition to those of the median simulated trial."""

    causes: tuple[Cause, ...]
    band: Band
    attempt: int


def explained(
    measure: Measure,
    live: Live,
    parameters: Mapping[str, object],
    work: Work,
    causes: Sequence[Cause] = CAUSES,
    *,
    repeated: bool = False,
) -> Explained:
    """What may explain a difference of `measure`. `parameters`: those of the trials; `work`: what the simulated trials
    did in the time that it measures; `repeated`: whether more attempts failed in some live trial than in the median
    simulated one. The band does not include the margin yet."""
    at_work = tuple(cause for cause in causes if measure.family in cause.families and live in cause.live)
    moving = tuple(cause for cause in at_work if cause.repeats or _moves(cause, work, parameters))
    found = tuple(cause for cause in moving if repeated or not cause.repeats)
    places = number(parameters, "partitions") if measure.unit is Unit.PARTITION_TIME else 1
    low = places * sum(cause.earlier.of(work, parameters) for cause in found)
    high = places * sum(cause.later.of(work, parameters) for cause in found)
    repeats = any(cause.repeats for cause in found)
    attempt = places * _of_an_attempt(measure, work, parameters) if repeats else 0
    return Explained(found, Band(-low, high), attempt)


def _moves(cause: Cause, work: Work, parameters: Mapping[str, object]) -> bool:
    return any(size.of(work, parameters) for size in (cause.later, cause.earlier))


def _upper_quartile(attempts: int, share: float) -> int:
    """The number of attempts that three trials of four do not exceed, if each attempt counts with probability
    `share`."""
    below = 0.0
    for within in range(attempts + 1):
        below += comb(attempts, within) * share**within * (1 - share) ** (attempts - within)
        if below >= 1 - TOLERATED:
            return within
    return attempts


def _of_an_attempt(measure: Measure, work: Work, parameters: Mapping[str, object]) -> int:
    """The most that one more failed attempt adds to a value."""
    match measure.key:
        case "changes.reads":
            return ceil(work.reads / max(1, work.attempts))
        case "changes.writes":
            return ceil(work.writes / max(1, work.attempts))
        case _:
            return 1000 * number(parameters, "rebalance_backoff_ms")
