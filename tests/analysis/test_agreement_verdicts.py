"""What is said of each measure: synthetic trials, causes of its own, and the table of measures on trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from rebalance_lab.analysis.agreement.causes import CAUSES, Cause, Live, Size, explained
from rebalance_lab.analysis.agreement.measures import (
    LEFT_OUT,
    MEASURES,
    Family,
    Measure,
    Measured,
    Source,
    Unit,
    Work,
    margin,
    measured,
    session_end,
    settled,
)
from rebalance_lab.analysis.agreement.verdicts import (
    Agreement,
    Compared,
    asks_for_slowed,
    beside_slowed,
    compare,
    overall,
)
from rebalance_lab.analysis.results import Episode
from rebalance_lab.checks import CHECKS, judge
from rebalance_lab.cli.agree_shown import reason
from rebalance_lab.trials.scenario import make_plan
from rebalance_lab.trials.stages.simulated.stage import simulate

PARAMETERS = {"tick_ms": 500, "partitions": 6, "servers": 1, "brokers": 2, "rebalance_backoff_ms": 400}
TIME = settled("paused")
COUNT = next(measure for measure in MEASURES if measure.key == "changes.reads")
NOTIFICATIONS = next(measure for measure in MEASURES if measure.key == "changes.notifications")
WORK = {"paused": Work(reads=41, writes=9, attempts=3)}

SLOW = Cause("slow", "a test's own", frozenset({Family.SETTLING}), later=Size(once_us=500_000))


def trials(values: Sequence[int], measure: Measure = TIME) -> list[Measured]:
    return [Measured(None, {measure: value}, WORK) for value in values]


def times(seed: int, number: int, later_us: int = 0) -> list[Measured]:
    drawn = np.random.default_rng(seed).integers(1_000_000, 1_200_000, number) + later_us
    return trials(drawn.tolist())


def verdict(live: list[Measured], simulated: list[Measured], causes: Sequence[Cause] = ()) -> Compared:
    row, left_out = compare(live, simulated, Live.PROCESSES, PARAMETERS, causes)
    assert left_out.measure is LEFT_OUT
    return row


def test_the_same_distribution_agrees() -> None:
    assert verdict(times(1, 30), times(2, 500)).verdict is Agreement.AGREES


def test_a_difference_beyond_the_margin_differs() -> None:
    row = verdict(times(1, 30, 400_000), times(2, 500))
    assert (row.verdict, row.margin) == (Agreement.DIFFERS, 100_000)


def test_too_few_trials_are_undecided_whether_they_look_alike_or_not() -> None:
    assert verdict(times(1, 5), times(2, 500)).verdict is Agreement.UNDECIDED
    assert verdict(times(1, 5, 130_000), times(2, 500)).verdict is Agreement.UNDECIDED


def test_a_cause_explains_what_is_in_its_direction_and_size() -> None:
    explained_row = verdict(times(1, 30, 400_000), times(2, 500), [SLOW])
    assert (explained_row.verdict, explained_row.explained.causes) == (Agreement.EXPLAINED, (SLOW,))
    assert verdict(times(1, 30, 1_000_000), times(2, 500), [SLOW]).verdict is Agreement.DIFFERS, "too large"
    assert verdict(times(1, 30, -400_000), times(2, 500), [SLOW]).verdict is Agreement.DIFFERS, "the wrong sign"


def test_a_cause_that_is_not_needed_does_not_make_agreement_less() -> None:
    assert verdict(times(1, 30), times(2, 500), [SLOW]).verdict is Agreement.AGREES


def test_counts_have_no_margin() -> None:
    same, more = trials([42] * 30, COUNT), trials([43] * 30, COUNT)
    assert verdict(same, trials([42] * 500, COUNT)).verdict is Agreement.AGREES
    assert verdict(more, trials([42] * 500, COUNT)).verdict is Agreement.DIFFERS


def test_a_measure_that_only_one_world_has_is_undecided() -> None:
    row = verdict(trials([]), trials([1] * 500))
    assert (row.verdict, row.live.n, row.effect) == (Agreement.UNDECIDED, 0, None)


def test_trials_left_out_are_compared_as_a_share() -> None:
    nothing = Measured("rest was missed")
    live, simulated = times(1, 30), [*times(2, 500), *([nothing] * 400)]
    _, left_out = compare(live, simulated, Live.PROCESSES, PARAMETERS, CAUSES)
    assert left_out.verdict is Agreement.DIFFERS, "live trials have no reason to be left out less"
    _, left_out = compare([*times(1, 20), *([nothing] * 20)], times(2, 500), Live.PROCESSES, PARAMETERS, CAUSES)
    assert left_out.verdict is Agreement.DIFFERS, "no cause excuses that half of the live trials say nothing"


def test_the_number_of_measures_is_corrected_for() -> None:
    """Of 40 measures that are the same in both worlds none differs, though some p-value is below 5 %."""
    measures = [settled(f"step {number}") for number in range(40)]
    dice = np.random.default_rng(5)

    def sample(number: int) -> list[Measured]:
        return [Measured(None, {each: int(dice.integers(10**9)) for each in measures}, {}) for _ in range(number)]

    rows = compare(sample(30), sample(300), Live.PROCESSES, PARAMETERS, ())
    assert min(row.beyond.p_value for row in rows if row.beyond is not None) < 0.05
    assert all(row.verdict is not Agreement.DIFFERS for row in rows)


def test_the_verdict_of_all_is_the_worst() -> None:
    agrees, differs = verdict(times(1, 30), times(2, 500)), verdict(times(1, 30, 400_000), times(2, 500))
    few = verdict(times(1, 5), times(2, 500))
    assert overall([agrees, few, differs]) is Agreement.DIFFERS
    assert overall([agrees, few]) is Agreement.UNDECIDED
    assert overall([agrees]) is Agreement.AGREES


def test_causes_grow_with_what_was_done_and_only_where_they_are_at_work() -> None:
    found = explained(TIME, Live.PROCESSES, PARAMETERS, WORK["paused"])
    assert [cause.name for cause in found.causes] == ["interpreter", "disk", "JVM of the server"]
    assert (found.band.low, found.band.high, found.attempt) == (0, 50 * 700 + 9 * 4_000 + 100_000, 0)
    unowned = next(measure for measure in MEASURES if measure.unit is Unit.PARTITION_TIME and "unowned" in measure.key)
    assert explained(unowned, Live.PROCESSES, PARAMETERS, WORK["paused"]).band.high == 6 * found.band.high
    session = explained(session_end("kill", 1), Live.PROCESSES, PARAMETERS, Work())
    assert (session.band.low, session.band.high) == (0, 100_000)


def test_a_process_start_counts_where_members_start() -> None:
    found = explained(TIME, Live.PROCESSES, PARAMETERS, Work(starts=2))
    assert [cause.name for cause in found.causes] == ["process start", "JVM of the server"]
    assert (found.band.low, found.band.high) == (0, 2 * 120_000 + 100_000)
    assert explained(TIME, Live.REAL, PARAMETERS, Work(starts=2)).band.high == 100_000


@pytest.mark.parametrize(("attempts", "more"), [(0, 0), (5, 0), (6, 1), (15, 1), (56, 4)])
def test_one_attempt_of_twenty_may_fail_for_want_of_a_core(attempts: int, more: int) -> None:
    measure = next(measure for measure in MEASURES if measure.key == "changes.conflicts")
    found = explained(measure, Live.PROCESSES, PARAMETERS, Work(attempts=attempts))
    assert (found.band.low, found.band.high) == (0, more)


@pytest.mark.parametrize(("key", "more"), [("settled", 400_000), ("changes.reads", 14), ("changes.writes", 3)])
def test_a_failed_attempt_is_worth_a_back_off_or_an_attempts_requests(key: str, more: int) -> None:
    measure = TIME if key == "settled" else next(each for each in MEASURES if each.key == key)
    work = Work(reads=82, writes=18, attempts=6)
    assert explained(measure, Live.PROCESSES, PARAMETERS, work).attempt == 0
    assert explained(measure, Live.PROCESSES, PARAMETERS, work, repeated=True).attempt == more


REPEATS = next(cause for cause in CAUSES if cause.repeats)


def repeating(trials: Sequence[Measured], failed: int, later_us: int) -> list[Measured]:
    """The trials with `failed` more failed attempts each, and later by `later_us`."""
    return [
        Measured(
            None,
            {measure: value + later_us for measure, value in trial.values.items()},
            {step: replace(work, failed=work.failed + failed) for step, work in trial.work.items()},
        )
        for trial in trials
    ]


def test_a_back_off_is_excused_in_the_trials_alone_in_which_an_attempt_failed() -> None:
    simulated = times(2, 500)
    seen = verdict(repeating(times(1, 30), 1, 400_000), simulated, [REPEATS])
    assert (seen.verdict, seen.repeated, seen.explained.attempt) == (Agreement.EXPLAINED, 30, 400_000)
    assert verdict(repeating(times(1, 30), 0, 400_000), simulated, [REPEATS]).verdict is Agreement.DIFFERS
    assert verdict(repeating(times(1, 30), 1, 900_000), simulated, [REPEATS]).verdict is Agreement.DIFFERS, "two"
    some = [*repeating(times(1, 10), 1, 0), *repeating(times(3, 20), 0, 400_000)]
    assert verdict(some, simulated, [REPEATS]).verdict is Agreement.DIFFERS, "it failed in other trials"


def test_what_fails_in_the_simulator_as_often_excuses_nothing() -> None:
    live, simulated = repeating(times(1, 30), 1, 400_000), repeating(times(2, 500), 1, 0)
    assert verdict(live, simulated, [REPEATS]).verdict is Agreement.DIFFERS


@pytest.mark.parametrize("key", ["changes.attempts", "changes.conflicts"])
def test_an_attempt_or_a_conflict_more_in_every_trial_differs(key: str) -> None:
    measure = next(each for each in MEASURES if each.key == key)
    live = repeating(trials([1] * 30, measure), 1, 0)
    assert verdict(live, trials([0] * 500, measure), CAUSES).verdict is Agreement.DIFFERS


def test_a_measure_without_a_value_in_many_trials_is_undecided() -> None:
    """Its check may be unknown just where the worlds differ."""
    nothing = [Measured(None, {}, WORK)]
    assert verdict([*times(1, 54), *nothing * 6], times(2, 500)).verdict is Agreement.AGREES
    few = verdict([*times(1, 53), *nothing * 7], times(2, 500))
    assert (few.verdict, few.live.n, few.live.trials) == (Agreement.UNDECIDED, 53, 60)
    assert "7 of 60 live trials have no value" in reason(few)
    assert verdict(times(1, 60), [*times(2, 300), *nothing * 200]).verdict is Agreement.UNDECIDED
    late = verdict([*times(1, 30, 400_000), *nothing * 30], times(2, 500))
    assert late.verdict is Agreement.DIFFERS, "what they have is enough to say that"


def test_the_end_of_a_session_may_move_by_a_tick_only_after_another_end() -> None:
    first = explained(session_end("kill", 1), Live.PROCESSES, PARAMETERS, Work())
    later = explained(session_end("kill", 2, Family.LATER_SESSION_END), Live.PROCESSES, PARAMETERS, Work())
    assert (first.band.low, later.band.low) == (0, -500_000)


def test_ends_that_the_server_times_are_told_from_those_that_members_ask_for() -> None:
    history, _ = simulate(make_plan("drill"))
    families = {each.key: each.family for each in measured(history, judge(history)).values}
    later = {key for key, family in families.items() if family is Family.LATER_SESSION_END}
    assert {"session.kill", "session.kill 2", "session.pause 4"} <= later
    assert {"session.leave", "session.leave 2", "session.pause 3"}.isdisjoint(later)
    assert families["session.leave"] is Family.SESSION_END


def test_a_member_that_leaves_as_soon_as_it_joined_explains_a_round_of_its_leader_finder() -> None:
    def reads(work: Work) -> int:
        return explained(COUNT, Live.PROCESSES, PARAMETERS, work).band.high

    assert (reads(Work(starts=5)), reads(Work(starts=5, short_stays=5))) == (0, 5 * 3)
    history, _ = simulate(make_plan("flapping"))
    (work,) = measured(history, judge(history)).work.values()
    assert (work.starts, work.short_stays) == (5, 5)
    history, _ = simulate(make_plan("storm"))
    assert sum(work.short_stays for work in measured(history, judge(history)).work.values()) == 0


def test_slow_operations_explain_counts_and_only_as_far_as_they_are_simulated() -> None:
    live = trials([28] * 40, NOTIFICATIONS)

    def beside(usual: int, slowed: int) -> Compared:
        rows = compare(live, trials([usual] * 500, NOTIFICATIONS), Live.PROCESSES, PARAMETERS)
        assert asks_for_slowed(rows) is (usual != 28)
        slower = compare(live, trials([slowed] * 500, NOTIFICATIONS), Live.PROCESSES, PARAMETERS)
        return beside_slowed(rows, slower)[0]

    assert beside(33, 28).verdict is Agreement.EXPLAINED
    assert "as slow as live ones" in reason(beside(33, 28))
    assert beside(33, 31).verdict is Agreement.DIFFERS
    assert beside(28, 28).verdict is Agreement.AGREES
    assert beside(28, 31).verdict is Agreement.DIFFERS, "one simulator must fit all counts"
    late = compare(times(1, 30, 400_000), times(2, 500), Live.PROCESSES, PARAMETERS, ())
    assert not asks_for_slowed(late), "times have causes with sizes"


def test_the_mean_operation_is_that_of_the_members_alone() -> None:
    plan = make_plan("herd", settings={"latency_min_us": "1000", "latency_max_us": "1000"})
    history, _ = simulate(plan)
    assert measured(history, judge(history)).operation_us == pytest.approx(2000, abs=200)
    counted, _ = simulate(make_plan("herd", settings={"ops": "counts"}))
    assert measured(counted, judge(counted)).operation_us is None


def test_differences_of_counts_are_whole() -> None:
    row = verdict(trials([42, 43] * 20, COUNT), trials([42] * 500, COUNT))
    assert row.effect is not None
    assert all(float(each).is_integer() for each in (row.effect.median, row.effect.low, row.effect.high))


def test_nothing_explains_other_counts() -> None:
    for measure in MEASURES:
        if measure.family is Family.COUNT:
            assert explained(measure, Live.REAL, PARAMETERS, WORK["paused"]).causes == ()


def test_every_cause_has_a_reason_a_size_and_something_that_it_moves() -> None:
    for cause in CAUSES:
        assert cause.why.endswith(".") and cause.families and cause.live
        assert cause.repeats or cause.later != Size() or cause.earlier != Size()
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)


def test_every_measure_of_the_table_exists() -> None:
    """Of a trial in earnest each is measured, or belongs to a check that does not apply to it."""
    history, _ = simulate(make_plan("herd"))
    found = measured(history, judge(history))
    assert found.left_out is None
    for measure in MEASURES:
        place, _, name = measure.key.partition(".")
        if measure.source is Source.CHANGES:
            assert name in {field.name for field in fields(Episode)}
        else:
            assert place in CHECKS
        assert measure in found.values, measure.key
    assert len({measure.key for measure in MEASURES}) == len(MEASURES)


def test_margins() -> None:
    assert margin(TIME, PARAMETERS) == 100_000
    assert margin(TIME, {**PARAMETERS, "tick_ms": 100}) == 20_000
    assert margin(COUNT, PARAMETERS) == 0
    assert margin(next(each for each in MEASURES if each.key == "changes.unowned_us"), PARAMETERS) == 600_000


def test_steps_are_named_by_what_the_runner_did_and_sessions_by_the_fault() -> None:
    history, _ = simulate(make_plan("crash"))
    found = measured(history, judge(history))
    assert list(found.work) == ["crashed"]
    assert found.values[settled("crashed")] < 100_000
    assert found.values[session_end("kill", 1)] > 1_000_000
    assert found.work["crashed"].operations > found.work["crashed"].writes > 0


def test_a_control_has_no_fault_and_settles_at_once() -> None:
    history, _ = simulate(make_plan("zombie", control=True))
    found = measured(history, judge(history))
    assert found.values[settled("control")] == 0
    assert not [measure for measure in found.values if measure.source is Source.SESSION]


@pytest.mark.parametrize(
    ("plant", "why"),
    [("pause-that-does-not-bite", "did not outlast session"), ("recorder-loses-releases", "event 25 is missing")],
)
def test_a_trial_that_shows_nothing_is_left_out_with_its_reason(plant: str, why: str) -> None:
    history, _ = simulate(make_plan("zombie", plant=plant))
    found = measured(history, judge(history))
    assert why in (found.left_out or "")
    assert not found.values
