"""What is compared between worlds: the table of measures, and their values in one trial.

Values come from the checks' findings, from the rebalance episodes of the trial's changes (the part
between its first rest and its closing), and from its faults. A trial has no values if its fault had no effect, if its
group missed a rest, or, live, if the machine was too busy (`left_out`). A measure has no value if its check is unknown
in that trial.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import mean

from rebalance_lab.analysis.results import Episode
from rebalance_lab.analysis.trialwise.episodes import CHANGE, episodes
from rebalance_lab.checks.completeness import unknown_causes
from rebalance_lab.checks.disturbances import disturbance
from rebalance_lab.checks.faults import TOLERANCE_US, faults
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.checks.operations import recorded_singly
from rebalance_lab.checks.phases import closing_us, rests_of
from rebalance_lab.history.events import EventId, Kind
from rebalance_lab.history.files import History
from rebalance_lab.history.views import CLOSING, events_of


class Unit(StrEnum):
    """The unit of a measure's values: microseconds, partition-microseconds, a count, or a flag (1 if the trial has some
    property, else 0)."""

    TIME = "us"
    PARTITION_TIME = "partition-us"
    COUNT = "count"
    SHARE = "share"


class Family(StrEnum):
    """What a measure is about. Causes of a difference are declared for families."""

    SETTLING = "settling"
    SESSION_END = "session end"
    LATER_SESSION_END = "later session end"
    OVERLAP = "overlap"
    UNOWNED = "unowned"
    REACTION = "reaction"
    COUNT = "count"
    REQUESTS = "requests"
    ATTEMPTS = "attempts"
    LEFT_OUT = "left out"


class Source(StrEnum):
    """Where a value comes from."""

    FINDING = "a check's finding"  # key: CHECK.MEASURE
    CHANGES = "the sum over the episodes of all changes"  # key: a field of Episode
    SETTLED = "the episodes after one change or fault"  # one measure for each
    SESSION = "a fault and the end of its victim's session"  # one for each fault
    TRIAL = "the trial itself"


@dataclass(frozen=True, slots=True)
class Measure:
    """`key`: its unique name in JSON. `name`: its name in texts. `step`: the step of a measure of one step (`Step`)."""

    key: str
    name: str
    unit: Unit
    family: Family
    source: Source
    step: str | None = None


def _time(key: str, name: str, family: Family, unit: Unit = Unit.TIME) -> Measure:
    return Measure(key, name, unit, family, _source(key))


def _count(key: str, name: str, family: Family = Family.COUNT) -> Measure:
    return Measure(key, name, Unit.COUNT, family, _source(key))


def _source(key: str) -> Source:
    return Source.CHANGES if key.startswith("changes.") else Source.FINDING


#: The measures that every trial has, in the order of presentation. Measures of steps and of sessions (`settled`,
#: `session_end`), whose number depends on the scenario, come before these.
MEASURES: tuple[Measure, ...] = (
    _count("belief_overlap.count", "belief overlaps"),
    _time("belief_overlap.longest_us", "belief overlap, longest", Family.OVERLAP),
    _time("belief_overlap.total_us", "belief overlap, sum", Family.OVERLAP, Unit.PARTITION_TIME),
    _count("effect_overlap.count", "effect overlaps"),
    _time("effect_overlap.longest_us", "effect overlap, longest", Family.OVERLAP),
    _time("effect_overlap.total_us", "effect overlap, sum", Family.OVERLAP, Unit.PARTITION_TIME),
    _count("registry_overlap.count", "registry overlaps"),
    _time("registry_overlap.longest_us", "registry overlap, longest", Family.OVERLAP),
    _time("registry_overlap.total_us", "registry overlap, sum", Family.OVERLAP, Unit.PARTITION_TIME),
    _count("zombie_overlap.zombies", "zombies"),
    _time("zombie_overlap.longest_belief_us", "zombie's belief overlap", Family.OVERLAP),
    _time("zombie_overlap.longest_us", "zombie's effect overlap", Family.OVERLAP),
    _time("unowned_window.longest_us", "longest unowned, registry", Family.UNOWNED),
    _time("unowned_window.longest_belief_us", "longest unowned, belief", Family.UNOWNED),
    _time("changes.unowned_us", "unowned partition-time", Family.UNOWNED, Unit.PARTITION_TIME),
    _time("missed_watch.longest_us", "slowest reaction, members", Family.REACTION),
    _time("broker_change_noticed.longest_us", "slowest reaction, brokers", Family.REACTION),
    _count("disagreement.count", "disagreements"),
    _count("non_convergence.retries_exhausted", "rebalances given up"),
    _count("omission.unowned", "unowned at rest"),
    _count("changes.notifications", "notifications"),
    _count("changes.watches", "watches fired"),
    _count("changes.rebalances", "rebalances"),
    _count("changes.attempts", "attempts", Family.ATTEMPTS),
    _count("changes.conflicts", "conflicts", Family.ATTEMPTS),
    _count("changes.reads", "reads", Family.REQUESTS),
    _count("changes.writes", "writes", Family.REQUESTS),
    _count("changes.moved", "partitions moved"),
)

#: The margin of a time, as a share of a tick (100 ms of the default 500). The server ends sessions at multiples of a
#: tick, and a back-off lasts one tick, so a fifth of a tick does not matter. It is also two of the periods in which
#: members report their work. Counts and shares have no margin; only the share of trials that may lie beyond
#: (`statistics.TOLERATED`) is allowed for them.
MARGIN_TICKS = 0.2


def margin(measure: Measure, parameters: Mapping[str, object]) -> int:
    """The difference, in the measure's unit, up to which two values are the same."""
    if measure.unit in (Unit.COUNT, Unit.SHARE):
        return 0
    tick_us = MARGIN_TICKS * 1000 * number(parameters, "tick_ms")
    return round(tick_us * (number(parameters, "partitions") if measure.unit is Unit.PARTITION_TIME else 1))


def number(parameters: Mapping[str, object], name: str) -> int:
    """The value of a parameter that is a whole number in every scenario."""
    value = parameters[name]
    assert isinstance(value, int), f"parameter {name} is a whole number in every scenario"
    return value


#: 1 for a trial that is left out of every other measure.
LEFT_OUT = Measure("left_out", "trials left out", Unit.SHARE, Family.LEFT_OUT, Source.TRIAL)


def settled(step: str) -> Measure:
    """How long the group was unsettled in a step: from the first event of an episode to the last before rest, summed
    over the step's episodes."""
    return Measure(f"settled.{step}", f"settling: {step}", Unit.TIME, Family.SETTLING, Source.SETTLED, step)


def session_end(fault: str, number: int, family: Family = Family.SESSION_END) -> Measure:
    """From a fault's beginning to the end of its victim's session. `number`: which of the faults with its name.
    `family`: LATER_SESSION_END if the session timed out, and another session had timed out before the fault."""
    nth = f" {number}" if number > 1 else ""
    key, name = f"session.{fault}{nth}", f"session ends after {fault}{nth}"
    return Measure(key, name, Unit.TIME, family, Source.SESSION)


@dataclass(frozen=True, slots=True)
class Work:
    """What all members of the group did in a step. `failed`: how many of the `attempts` failed. `starts`: the members
    that started; `short_stays`: those of them that left in the same step."""

    reads: int = 0
    writes: int = 0
    attempts: int = 0
    failed: int = 0
    starts: int = 0
    short_stays: int = 0

    @property
    def operations(self) -> int:
        return self.reads + self.writes


@dataclass(frozen=True, slots=True)
class Measured:
    """One trial's values. `left_out`: why it has none; None if it has some. `work`: by step. `failed`: the attempts
    that failed before the closing, including those before the first rest. `operation_us`: how long the
    average operation of a member took between the first rest and the closing, if operations are recorded one by one."""

    left_out: str | None
    values: Mapping[Measure, int] = field(default_factory=dict)
    work: Mapping[str, Work] = field(default_factory=dict)
    failed: int = 0
    operation_us: int | None = None

    def failed_in(self, measure: Measure) -> int:
        """The failed attempts in the time that a measure covers: in its step, in all changes, or, as for checks, in the
        whole trial."""
        if measure.step is not None:
            return self.work.get(measure.step, Work()).failed
        if measure.source is Source.CHANGES:
            return sum(each.failed for each in self.work.values())
        return self.failed


def measured(history: History, findings: Mapping[str, Finding]) -> Measured:
    """The values of a trial with these findings."""
    why = _why_left_out(history)
    if why is not None:
        return Measured(why)
    found = episodes(history)
    changes = [each for each in found if each.part == CHANGE]
    steps = _steps(history, changes)
    values = {settled(name): sum(each.duration_us for each in of_step) for name, of_step in steps.items()}
    values |= _of_sessions(history)
    values |= dict(_of_table(changes, findings))
    failed = sum(each.failed_attempts for each in found if each.part != CLOSING)
    stays = _stays(history)
    work = {name: _work(each, *stays.get(name, (0, 0))) for name, each in steps.items()}
    return Measured(None, values, work, failed, _operation_us(history))


def _why_left_out(history: History) -> str | None:
    causes = unknown_causes(history)
    if causes:
        return causes[0]
    lost = disturbance(history)
    if lost is None:
        return None
    what = "session" if lost.kind is Kind.EXPIRED else "connection"
    return f"{lost.actor} lost its {what}, and no fault explains it"


def _steps(history: History, changes: Sequence[Episode]) -> dict[str, list[Episode]]:
    """The episodes of each step, in the order of the steps. A step goes from one rest to the next and has the name of
    its first phase, which says what the runner did to the group. Steps with the same name count as one."""
    rests = [rest.at_us for rest in rests_of(history)]
    names = _step_names(history, rests)
    found: dict[str, list[Episode]] = {name: [] for name in names.values()}
    for each in changes:
        # The registry's times may be too early by the tolerance, so its first event may seem to be before the rest.
        number = bisect_right(rests, each.begin_us + TOLERANCE_US)
        if number in names:
            found[names[number]].append(each)
    return found


def _step_names(history: History, rests: Sequence[int]) -> dict[int, str]:
    """The name of each step, by the number of rests before it."""
    names: dict[int, str] = {}
    for phase in events_of(history, Kind.PHASE):
        number = bisect_right(rests, phase.at_us)
        if number > 0 and phase.of("name") != CLOSING:
            names.setdefault(number, str(phase.of("name")))
    return names


def _stays(history: History) -> dict[str, tuple[int, int]]:
    """How many members started in each step, and how many of these left in the same step."""
    rests = [rest.at_us for rest in rests_of(history)]
    names = _step_names(history, rests)
    closings = events_of(history, Kind.MEMBER_CLOSING)
    found: dict[str, tuple[int, int]] = {}
    for started in events_of(history, Kind.MEMBER_STARTED):
        step = names.get(bisect_right(rests, started.at_us))
        if step is None:
            continue
        end_us = next((rest for rest in rests if rest > started.at_us), started.at_us)
        left = any(each.actor == started.actor and started.at_us < each.at_us < end_us for each in closings)
        starts, short = found.get(step, (0, 0))
        found[step] = (starts + 1, short + left)
    return found


def _work(found: Sequence[Episode], starts: int, short_stays: int) -> Work:
    names = ("reads", "writes", "attempts", "failed_attempts")
    sums = [sum(getattr(each, name) for each in found) for name in names]
    return Work(*[*sums, starts, short_stays])


def _operation_us(history: History) -> int | None:
    """The mean duration of the members' operations between the first rest and the closing."""
    rests = rests_of(history)
    singly = recorded_singly(history) & {started.actor for started in events_of(history, Kind.MEMBER_STARTED)}
    if not rests or not singly:
        return None
    end_us, _ = closing_us(history)
    began: dict[EventId, int] = {}
    took: list[int] = []
    for event in events_of(history, Kind.INVOKED, Kind.OK, Kind.FAILED_OP):
        if event.actor not in singly or not rests[0].at_us <= event.at_us <= end_us:
            continue
        if event.kind is Kind.INVOKED:
            began[event.id] = event.at_us
        elif event.cause in began:
            took.append(event.at_us - began[event.cause])
    return round(mean(took)) if took else None


def _of_sessions(history: History) -> dict[Measure, int]:
    """The values for each fault whose victim's session ended before the group was shut down."""
    end_us, _ = closing_us(history)
    closed = events_of(history, Kind.SESSION_CLOSED)
    ended = {event.session: event.at_us for event in closed if event.at_us < end_us - TOLERANCE_US}
    tick_us = 1000 * number(history.trial.parameters, "tick_ms")
    numbers: dict[str, int] = {}
    timed_out_us: list[int] = []
    found: dict[Measure, int] = {}
    for fault in faults(history):
        name, session = str(fault.began.of("fault")), fault.began.of("session")
        numbers[name] = numbers.get(name, 0) + 1
        if session in ended:
            took_us = max(0, ended[session] - fault.began.at_us)
            timed_out = took_us > tick_us
            later = timed_out and any(at_us < fault.began.at_us for at_us in timed_out_us)
            family = Family.LATER_SESSION_END if later else Family.SESSION_END
            found[session_end(name, numbers[name], family)] = took_us
            timed_out_us += [ended[session]] if timed_out else []
    return found


def _of_table(changes: Sequence[Episode], findings: Mapping[str, Finding]) -> Iterator[tuple[Measure, int]]:
    for measure in MEASURES:
        place, _, name = measure.key.partition(".")
        if measure.source is Source.CHANGES:
            yield measure, sum(getattr(each, name) for each in changes)
        elif place in findings and findings[place].outcome is not Outcome.UNKNOWN and name in findings[place].measures:
            yield measure, findings[place].measures[name]
