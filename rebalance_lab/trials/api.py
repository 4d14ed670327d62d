"""Running trials: one, or many on local processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice, product
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TypeVar, Unpack

import msgspec

from rebalance_lab.checks import checks_of, judge
from rebalance_lab.checks.model import Finding, Outcome
from rebalance_lab.history.disk import is_for_want_of_space, no_space, writing
from rebalance_lab.history.files import TRIAL_FILE, History, Trial, load, read_trial, seal
from rebalance_lab.history.scratch import LOCK, PART, Scratch, orphans, owned, remove_whole, replacing
from rebalance_lab.history.views import gave_up
from rebalance_lab.kernel.errors import LabError
from rebalance_lab.kernel.interruption import undisturbed
from rebalance_lab.trials.names import some_of
from rebalance_lab.trials.plan import Plan, PlanError, Value, run_command
from rebalance_lab.trials.scenario import PlanOptions, make_plan, plan_like, scenario, scenario_names
from rebalance_lab.trials.stage import GaveUp
from rebalance_lab.trials.stages.live import perform
from rebalance_lab.trials.stages.simulated.stage import simulate
from rebalance_lab.world.live.java import EmbeddedServerError
from rebalance_lab.world.process.semaphores import name_semaphores
from rebalance_lab.world.process.states import bind_worker

__all__ = [
    "FailedTrial",
    "Lane",
    "TrialFailed",
    "TrialResult",
    "WorkerKilled",
    "attempt",
    "attempts",
    "each_in",
    "each_of",
    "make_plan",
    "plan_of",
    "plans",
    "run",
    "scenario",
    "scenario_names",
    "sweep",
    "sweep_lanes",
]

#: Among a trial's settings: the name of a planted bug.
PLANT = "plant"

#: Errors that would end every other trial of a sweep, too.
_HOPELESS = (PlanError, OSError, EmbeddedServerError)

R = TypeVar("R")


class TrialFailed(LabError):
    """A trial in another process raised an error that cannot be sent between processes. The message has its type."""


class WorkerKilled(LabError):
    """A process that ran trials was ended from outside. The message names the trials that it may have been running."""


class TrialStatus(StrEnum):
    """A trial's findings compared with the expectations of its scenario."""

    AS_EXPECTED = "as expected"
    SURPRISE = "surprise"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial that was run, stored and judged. `findings`: check name -> Finding."""

    folder: Path
    trial: Trial
    findings: Mapping[str, Finding]

    @property
    def status(self) -> TrialStatus:
        """An unknown check makes the trial unknown, even if the scenario allows both outcomes, as neither was shown."""
        expected = self.expected
        outcomes = {name: finding.outcome for name, finding in self.findings.items()}
        if any(outcome not in {expected.get(name, outcome), Outcome.UNKNOWN} for name, outcome in outcomes.items()):
            return TrialStatus.SURPRISE
        return TrialStatus.UNKNOWN if Outcome.UNKNOWN in outcomes.values() else TrialStatus.AS_EXPECTED

    @property
    def expected(self) -> Mapping[str, Outcome]:
        """The outcome that the scenario expects, by check; no entry where it expects nothing."""
        return {name: outcome for name, outcome in expectation(self.trial).items() if outcome is not None}

    @property
    def measures(self) -> Mapping[str, int]:
        """The numbers of all checks, as CHECK_MEASURE; the unit ends the name."""
        return {
            f"{name}_{measure}": number
            for name, finding in self.findings.items()
            for measure, number in finding.measures.items()
        }


@dataclass(frozen=True, slots=True)
class FailedTrial:
    """A trial that did not complete; it may be stored, see `run`. `why`: the message of the error."""

    plan: Plan
    why: str


#: The result of a trial of a sweep.
Ended = TrialResult | FailedTrial

#: Called with a stored trial's folder, its history and its findings, while the history is still in memory.
Keeper = Callable[[Path, History, Mapping[str, Finding]], None]


@dataclass(frozen=True, slots=True)
class Lane:
    """Plans with `processes` local processes of their own. `niceness`: by how much these are nicer than this process,
    so that live trials beside them are not held up."""

    plans: Iterable[Plan]
    processes: int = 2
    niceness: int = 0


def plans(
    name: str,
    settings: Mapping[str, Sequence[Value]],
    seeds: Iterable[int],
    **options: Unpack[PlanOptions],
) -> list[Plan]:
    """A plan for every combination of settings and each seed; the last setting changes fastest. `settings`: values,
    or texts as from `--set`; a setting `plant` is the name of a planted bug, or empty. Raises PlanError, also for a
    trial that would be run twice, as with the values 2 and 02."""
    found = []
    for combination in product(*settings.values()):
        values = dict(zip(settings, combination, strict=True))
        plant = str(values.pop(PLANT, "")) or None
        found += [make_plan(name, seed=seed, settings=values, plant=plant, **options) for seed in seeds]
    often, times = Counter(each.trial_id for each in found).most_common(1)[0] if found else ("", 0)
    if times > 1:
        raise PlanError(f"trial {often} is wanted {times} times: give each seed and each value of a setting once")
    return found


def expectation(trial: Trial) -> Mapping[str, Outcome | None]:
    """The outcome that a trial's scenario expects of every check of its subject, by name. Raises ValueError if the
    scenario leaves out such a check or names another."""
    expected = scenario(trial.scenario).expects(plan_like(trial))
    if odd := ", ".join(sorted(set(expected) ^ set(checks_of(trial.subject)))):
        raise ValueError(f"scenario {trial.scenario} must expect something of every check; look at: {odd}")
    return expected


def plan_of(folder: Path) -> Plan:
    """The plan of a stored trial. Raises HistoryError, PlanError."""
    return plan_like(read_trial(folder))


def run(plan: Plan, store: Path, keep: Keeper | None = None) -> TrialResult:
    """Run one trial and store it under `store`. `keep`: what else to do with its history.

    The folder of a simulated trial is named after its plan: running the plan again replaces it, with the same
    content. A live trial gets a new folder. Raises TrialError, PlanError, OSError, EmbeddedServerError. The folder of
    a live trial that failed stays, unsealed, with its logs, unless the trial was interrupted, filled the disk, or
    failed before it left any log (`_left_traces`). A trial in which the runner gave up raises GaveUp and is stored
    like any other, because what it waited for may be what a claim denies.
    """
    store.mkdir(parents=True, exist_ok=True)
    if plan.world == "simulated":
        history, body = simulate(plan)
        folder = _store_simulated(store, history, body)
    else:
        folder = store / f"{plan.trial_id}-{time.time_ns() // 1_000_000}-{os.getpid()}"
        _perform(plan, folder)
        history = load(folder)
    why = gave_up(history)
    if why is not None:
        stopped = GaveUp(f"{why}; the trial until then is in {folder}")
        stopped.add_note(f"again: {run_command(plan)}")
        raise stopped
    findings = judge(history)
    if keep is not None:
        keep(folder, history, findings)
    return TrialResult(folder, history.trial, findings)


def planted_in_vain(plan: Plan, trial: Trial) -> bool:
    """Whether the trial's planted bug changed nothing: without it the history is the same, event for event. A trial in
    real time does not repeat, so it is never said of one. Raises as `run`."""
    if plan.plant is None or plan.world != "simulated":
        return False
    without, _ = simulate(msgspec.structs.replace(plan, plant=None))
    return without.trial.history_sha256 == trial.history_sha256


def _perform(plan: Plan, folder: Path) -> None:
    with owned(lambda: Scratch.make(folder)) as scratch:
        try:
            perform(plan, folder)
        except BaseException as error:
            full = not isinstance(error, KeyboardInterrupt) and is_for_want_of_space(error, folder)
            if full:  # whatever ended first
                raise no_space(folder) from error
            if not isinstance(error, KeyboardInterrupt) and _left_traces(folder):
                scratch.keep()
            raise
        scratch.keep()


def remove_unfinished(store: Path) -> None:
    """Remove the trials of processes that were killed."""
    for pattern in ("[!.]*", f".*{PART}"):
        for folder in orphans(store, pattern):
            if (folder / TRIAL_FILE).exists():  # killed right after it was sealed
                (folder / LOCK).unlink(missing_ok=True)
            else:
                remove_whole(folder)


#: Files of a failed trial that are worth keeping: members' events, and the logs of processes.
_TRACES = ("m[0-9]*.jsonl", "*.stderr", "**/*.log")


def _left_traces(folder: Path) -> bool:
    """Whether a member recorded an event there, or a process that was started left a log."""
    return any(file.stat().st_size > 0 for pattern in _TRACES for file in folder.glob(pattern))


def _store_simulated(store: Path, history: History, body: bytes) -> Path:
    folder = store / history.trial.id
    with replacing(folder) as part:
        with writing(folder):
            (part / "events.jsonl").write_bytes(body)
        seal(part, history.trial)
    return folder


def attempt(plan: Plan, store: Path, keep: Keeper | None = None) -> Ended:
    """`run` for a sweep: an error that concerns this trial alone is returned, not raised."""
    try:
        return run(plan, store, keep)
    except _HOPELESS:
        raise
    except Exception as error:
        return FailedTrial(plan, f"{type(error).__name__}: {error}")


def sweep(plans: Iterable[Plan], store: Path, processes: int = 2) -> Iterator[TrialResult]:
    """Run many trials on `processes` local processes; results come as they are completed.

    Only a few trials for each process are under way at a time, so a long sweep uses little memory. Raises what a
    trial raises, after the others under way have ended (TrialFailed, where that error cannot leave its process), and
    WorkerKilled. Ctrl-C, and closing the iterator, end this process's workers
    and everything they started (see `world.process.states`), and remove the trials that were under way.
    """
    return sweep_lanes([Lane(plans, processes)], store)


def sweep_lanes(lanes: Sequence[Lane], store: Path, keep: Keeper | None = None) -> Iterator[TrialResult]:
    """`sweep` of several lanes side by side. `keep`: as for `run`; a function that a process can import."""
    return _stored(store, each_in(lanes, partial(run, store=store, keep=keep)))


def attempts(plans: Iterable[Plan], store: Path, processes: int = 2, keep: Keeper | None = None) -> Iterator[Ended]:
    """`sweep`, but it goes on after a trial that failed (see `attempt`)."""
    return _stored(store, each_of(plans, partial(attempt, store=store, keep=keep), processes))


def _stored(store: Path, ended: Iterator[R]) -> Iterator[R]:
    try:
        yield from ended
    except (KeyboardInterrupt, GeneratorExit):
        remove_unfinished(store)
        raise


def each_of(plans: Iterable[Plan], each: Callable[[Plan], R], processes: int = 2) -> Iterator[R]:
    """The result of `each` for every plan, on local processes, in no order (see `sweep`). `each` must be a function
    that a process can import, or a `functools.partial` of one."""
    return each_in([Lane(plans, processes)], each)


def each_in(lanes: Sequence[Lane], each: Callable[[Plan], R]) -> Iterator[R]:
    """`each_of` for several lanes side by side."""
    if any(lane.processes < 1 for lane in lanes):
        raise PlanError(f"cannot run trials on {min(lane.processes for lane in lanes)} processes")
    with ExitStack() as ends:
        pools = [ends.enter_context(_pool(lane)) for lane in lanes]
        waiting = [_batches(lane.plans) for lane in lanes]
        pending: dict[Future[list[R]], tuple[int, list[Plan]]] = {}  # to the number of its lane, and what it runs

        def submit(number: int, count: int) -> None:
            for batch in islice(waiting[number], count):
                with undisturbed():  # the first one starts the workers, which read from this process what they are
                    pending[pools[number].submit(_run_batch, each, batch)] = number, batch

        try:
            for number, lane in enumerate(lanes):
                submit(number, 2 * lane.processes)
            while pending:
                done, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    number, _ = pending[future]
                    submit(number, 1)
                    yield from future.result()
                    del pending[future]
        except (KeyboardInterrupt, GeneratorExit):
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
        except BaseException as error:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise _killed([plan for _, batch in pending.values() for plan in batch]) from error
            raise


def _killed(unfinished: Sequence[Plan]) -> WorkerKilled:
    names = some_of(sorted(plan.trial_id for plan in unfinished), limit=4)
    return WorkerKilled(
        "a process that ran trials was ended from outside, by kill -9 or by the kernel for want of memory; trials that "
        f"ended before are kept; those under way or next were {names}; run the command again"
    )


def _pool(lane: Lane) -> ProcessPoolExecutor:
    _start_resource_tracker()
    name_semaphores()
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        lane.processes, mp_context=context, initializer=_begin_worker, initargs=(os.getpid(), lane.niceness)
    )


def _start_resource_tracker() -> None:
    """Start the process of `multiprocessing` that removes semaphores, deaf to SIGHUP. It ignores SIGINT and SIGTERM,
    but would die of the SIGHUP that a terminal sends to all when it closes. What is blocked here stays so in a
    child."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(parent_pid: int, niceness: int) -> None:
    """In each process of a sweep."""
    bind_worker(parent_pid)
    os.nice(niceness)


#: Simulated trials are short, so a process gets several at once.
BATCH = 8


def _batches(plans: Iterable[Plan]) -> Iterator[list[Plan]]:
    batch: list[Plan] = []
    for plan in plans:
        if plan.world != "simulated":
            yield [plan]
            continue
        batch.append(plan)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _run_batch(each: Callable[[Plan], R], plans: list[Plan]) -> list[R]:
    """In each process of a sweep. An error that cannot be read by the process that waits would break the whole pool,
    and hide what happened."""
    try:
        return [each(plan) for plan in plans]
    except Exception as error:
        if _can_be_sent(error):
            raise
        failed = TrialFailed(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            failed.add_note(note)
        raise failed from error


def _can_be_sent(error: Exception) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever its constructor raises
        return False
    return True
