"""The causes that may explain a difference between live and simulated trials. Each is declared here, before any trial,
with its sign and its largest size. A larger difference is not explained.

The simulator includes only the time between a member and the server (parameters `latency_min_us` and `latency_max_us`,
which stand for the live network) and the time in which a process starts (`start_min_us`, `start_max_us`). It has no
processor, disk or garbage collection. So live times are longer, and how much longer depends on what was done in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, comb

from rebalance_lab.analysis.agreement.measures import Family, Measure, Unit, Work, number
from rebalance_lab.analysis.agreement.statistics import TOLERATED, Band


class Live(StrEnum):
    """What is compared with the simulator: the lab's members as processes, or real 0.8.2.2 consumers."""

    PROCESSES = "processes"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class Size:
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


@dataclass(frozen=True, slots=True)
class Cause:
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


_WORKING = frozenset({Family.SETTLING, Family.UNOWNED, Family.REACTION})
_TIMES = _WORKING | {Family.OVERLAP, Family.SESSION_END, Family.LATER_SESSION_END}

CAUSES: tuple[Cause, ...] = (
    Cause(
        "interpreter",
        "Members are Python processes that share the machine's cores with each other, the server and the runner. In "
        "the median of 461 live trials the average read took 0.7 ms longer than a simulated one.",
        _WORKING,
        later=Size(operation_us=700),
        live=frozenset({Live.PROCESSES}),
    ),
    Cause(
        "failed attempt",
        "Members wait for a core, and so do not run at once: one that gives up its partitions late makes another's "
        "attempt fail, which is repeated after a back-off. This explains only the trials in which it was seen. How "
        "often it is seen is compared too, and explained only as far as the next cause goes.",
        frozenset({Family.SETTLING, Family.UNOWNED, Family.REQUESTS}),
        repeats=True,
    ),
    Cause(
        "scheduling",
        "For the same reason more attempts fail live, each on another's claim, and are made again: in 216 earlier live "
        "trials 2.8 % of 2,805 attempts, by scenario up to 5 %, where simulated ones had none.",
        frozenset({Family.ATTEMPTS}),
        later=Size(attempt_percent=5),
    ),
    Cause(
        "process start",
        "A simulated process starts in 0.25 to 0.55 s, as a live one does on an idle machine: in the median of 108 "
        "live starts in 0.37 s. Beside other trials 95 % took up to 0.67 s, 0.12 s above the simulated longest.",
        frozenset({Family.SETTLING}),
        later=Size(start_us=120_000),
        live=frozenset({Live.PROCESSES}),
    ),
    Cause(
        "command",
        "The runner learns what a live process did, and the process what it is to do, some milliseconds later; in "
        "the simulator both learn at once. So a live member that leaves as soon as it has joined first ends the round "
        "of its leader finder, 1 + B reads, in which a simulated one is interrupted.",
        frozenset({Family.REQUESTS}),
        later=Size(finder_rounds=1),
    ),
    Cause(
        "tick",
        "The server ends sessions at multiples of its tick. Where one end follows another in a trial, what lies "
        "between them is rounded up to a number of ticks, so a small difference, as in the start of a process, may "
        "move the second end by a whole tick. A first end is not bound to another, and has no such excuse.",
        frozenset({Family.LATER_SESSION_END}),
        later=Size(ticks=1),
        earlier=Size(ticks=1),
    ),
    Cause(
        "disk",
        "The server replies to a write when its transaction log is on disk (fsync), one write after another. In the "
        "median of the same trials the average write took 4 ms longer than the average read.",
        _WORKING,
        later=Size(write_us=4_000),
    ),
    Cause(
        "JVM of the server",
        "The server's JVM is seconds old: compiling and collecting stop it for up to 100 ms.",
        _TIMES,
        later=Size(once_us=100_000),
    ),
    Cause(
        "JVM of the members",
        "A real member's JVM is as young, and logs each operation at DEBUG: up to 5 ms an operation.",
        _WORKING,
        later=Size(operation_us=5_000),
        live=frozenset({Live.REAL}),
    ),
    Cause(
        "fetches",
        "A real member's effect is what it fetches: a request waits up to 100 ms at the broker, and the fetcher is "
        "stopped before the partition is given up. Ours report work every 50 ms.",
        frozenset({Family.OVERLAP}),
        later=Size(once_us=200_000),
        earlier=Size(once_us=200_000),
        live=frozenset({Live.REAL}),
    ),
)

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
