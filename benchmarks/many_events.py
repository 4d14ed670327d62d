"""Millions of events, from Parquet to every table of the analysis, on two cores.

Run: python benchmarks/many_events.py [--events 1000000,5000000,20000000] [--cores 2] [--folder DIR] [--json]

The events are those of real simulated trials, repeated under new ids until there are enough. For
each size a process of its own starts Spark, makes the tables with nothing judged yet, and ends. Exits with 1
when a table does not hold what the trials were found to show, when 20 million events take longer
than two minutes, or when any size takes more than 4 GB. For a hundred million events:

    python benchmarks/many_events.py --events 20000000,100000000
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import psutil

from rebalance_lab.analysis import session
from rebalance_lab.analysis.counts import outcome_counts_of
from rebalance_lab.analysis.ledger import read_ledger
from rebalance_lab.analysis.parquet import Entry, Parquet, write_part
from rebalance_lab.analysis.store import Store
from rebalance_lab.analysis.summarised import summarised
from rebalance_lab.cli.claims import TRIALS_SHOWN
from rebalance_lab.history.files import load
from rebalance_lab.trials.api import TrialResult, make_plan, sweep

#: What each repetition holds: seeds 1 to `SEEDS` under both rule sets, and a control of each.
SCENARIOS = ("crash", "herd", "leave", "rolling-restart", "split-brain", "uncontrolled", "walkthrough", "zombie")
SEEDS = 8

#: Events of one part, as the store's own parts have them.
PART_EVENTS = 500_000

#: What each size may take, and that of so many events.
LIMIT_GB = 4.0
LIMIT_S, LIMITED_EVENTS = 120, 20_000_000

_SAMPLE_S = 0.2


@dataclass(frozen=True, slots=True)
class Named:
    """A trial under a new id. `base`: whose events it has."""

    name: str
    base: TrialResult


@dataclass(frozen=True, slots=True)
class Part:
    """A Parquet file, and what is in it."""

    trials: tuple[Named, ...]
    entries: tuple[Entry, ...]


@dataclass(slots=True)
class Measured:
    """One size. `bytes`: of its Parquet; `peak_gb`: resident, of all processes together;
    `processor_s`: of all of them, whatever else the machine did meanwhile."""

    events: int
    trials: int
    bytes: int
    seconds: float = 0.0
    processor_s: float = 0.0
    peak_gb: float = 0.0
    wrong: list[str] = field(default_factory=list)


def base_trials(store: Path) -> list[TrialResult]:
    """The trials that are repeated, run and judged."""
    plans = [
        make_plan(name, rules=rules, seed=seed, control=control)
        for name in SCENARIOS
        for rules in ("described", "shipped")
        for control, seeds in ((False, SEEDS), (True, 1))
        for seed in range(1, seeds + 1)
    ]
    return sorted(sweep(plans, store), key=lambda result: result.trial.id)


def written(base: list[TrialResult], events: int, folder: Path) -> list[Part]:
    """Parts with at least that many events: repetition after repetition of the base."""
    lengths = {result.trial.id: len(load(result.folder).events) for result in base}
    dealt: list[list[Named]] = []
    waiting: list[Named] = []
    in_part = total = 0
    for number in count():
        for result in base:
            waiting.append(Named(f"{result.trial.id}-r{number:05}", result))
            in_part += lengths[result.trial.id]
            total += lengths[result.trial.id]
            if in_part >= PART_EVENTS or total >= events:
                dealt.append(waiting)
                waiting, in_part = [], 0
            if total >= events:
                with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
                    return list(pool.map(_write, dealt, [folder] * len(dealt)))
    raise AssertionError("count() ends")


def _write(trials: list[Named], folder: Path) -> Part:
    rows = [{"trial": each.name, "folder": str(each.base.folder), "looks": ""} for each in trials]
    entries = []
    for entry in msgspec.convert(write_part(rows, folder), list[Entry]):
        # A history of its own: trials of one history would count once.
        own = hashlib.sha256(f"{entry.trial} {entry.history_sha256}".encode()).hexdigest()
        entries.append(replace(entry, history_sha256=own))
    return Part(tuple(trials), tuple(entries))


def of_size(parts: list[Part], events: int) -> list[Part]:
    """The first parts, until they hold so many events."""
    chosen: list[Part] = []
    total = 0
    for part in parts:
        if total >= events:
            break
        chosen.append(part)
        total += sum(entry.events for entry in part.entries)
    return chosen


def measure(parts: list[Part], folder: Path, cores: int) -> Measured:
    """Summarise these parts in a process of its own, from its start to its end."""
    entries = [entry for part in parts for entry in part.entries]
    files = {entry.part for entry in entries}
    measured = Measured(
        events=sum(entry.events for entry in entries),
        trials=len(entries),
        bytes=sum((folder / name).stat().st_size for name in files),
    )
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_summarise, args=(parts, folder, cores, sending))
    began = time.perf_counter()
    process.start()
    sending.close()
    with _watched(process.pid or 0, measured):
        try:
            measured.wrong = receiving.recv()
        except EOFError:
            measured.wrong = ["it ended before it had summarised"]
        process.join()
    measured.seconds = time.perf_counter() - began
    return measured


def _summarise(parts: list[Part], folder: Path, cores: int, said: multiprocessing.connection.Connection) -> None:
    named = [each for part in parts for each in part.trials]
    store = Store(folder, {each.name: each.base.folder for each in named})
    entries = {entry.trial: entry for part in parts for entry in part.entries}
    with session.start(cores=cores) as local:
        try:
            places = Parquet(local.session, store, folder, entries).rows
            most = TRIALS_SHOWN if len(places) > TRIALS_SHOWN else None
            analysis, _ = summarised(local.session, places, read_ledger(), rejudge=True, most=most)
        except Exception as error:  # told while Java lives: some errors ask it for their text
            said.send(
                [f"{error}; {local.folder / 'spark.log'} ends: {(local.folder / 'spark.log').read_text()[-2000:]}"]
            )
            return
    found: Counter[tuple[str, str, str]] = Counter()
    for each in outcome_counts_of(analysis):
        found[each.scenario, each.check, each.outcome] += each.trials
    known = Counter(
        (each.base.trial.scenario, name, finding.outcome.value)
        for each in named
        for name, finding in each.base.findings.items()
    )
    wrong = [f"{key}: {found[key]} in the table, {known[key]} in the trials" for key in sorted(found | known)]
    said.send([text for key, text in zip(sorted(found | known), wrong, strict=True) if found[key] != known[key]])


@contextmanager
def _watched(pid: int, measured: Measured) -> Iterator[None]:
    """Within the block, what a process and all below it take: the most that they have resident
    at one moment, and their processor time (but for the last moment of each)."""
    ended = threading.Event()
    processor_s: dict[int, float] = {}

    def sample() -> None:
        while not ended.wait(_SAMPLE_S):
            resident = _look(pid, processor_s)
            measured.peak_gb = max(measured.peak_gb, resident / 1e9)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        measured.processor_s = sum(processor_s.values())


def _look(pid: int, processor_s: dict[int, float]) -> int:
    """Resident bytes of a process and all below it, and the processor seconds of each so far. Pages
    that several share count for each: it is never less than what they take."""
    total, family = 0, list[psutil.Process]()
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    for one in family:
        with suppress(psutil.NoSuchProcess):  # it has ended
            total += one.memory_info().rss
            times = one.cpu_times()
            processor_s[one.pid] = times.user + times.system
    return total


def show(found: list[Measured], wrote_s: float) -> None:
    print(f"written as Parquet in {wrote_s:.0f} s")
    for each in found:
        print(
            f"{each.events:>12,} events of {each.trials:>7,} trials, {each.bytes / 1e6:>6.0f} MB:"
            f" {each.seconds:6.1f} s (processor {each.processor_s:6.1f} s), {each.peak_gb:.2f} GB,"
            f" {1e6 * each.seconds / each.events:.1f} µs an event"
        )
        for text in each.wrong:
            print(f"    wrong: {text}")
    if len(found) > 1:
        for name in ("seconds", "processor_s"):
            each_s, start_s = np.polyfit([one.events for one in found], [getattr(one, name) for one in found], 1)
            print(f"{name}: {start_s:.0f} s and {1e6 * each_s:.1f} µs an event (straight line by least squares)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", default="1000000,2500000,5000000,10000000,20000000")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the Parquet goes meanwhile, a few GB")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sizes = sorted(int(text) for text in arguments.events.split(","))
    with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
        base = base_trials(Path(scratch) / "trials")
        folder = Path(scratch) / "parquet"
        folder.mkdir()
        began = time.perf_counter()
        parts = written(base, sizes[-1], folder)
        wrote_s = time.perf_counter() - began
        found = [measure(of_size(parts, size), folder, arguments.cores) for size in sizes]
    if arguments.json:
        print(json.dumps({"wrote_s": wrote_s, "sizes": [msgspec.to_builtins(each) for each in found]}))
    else:
        show(found, wrote_s)
    return 1 if any(each.wrong or _takes_too_much(each) for each in found) else 0


def _takes_too_much(measured: Measured) -> bool:
    slow = measured.seconds >= LIMIT_S and abs(measured.events - LIMITED_EVENTS) < PART_EVENTS
    return slow or measured.peak_gb >= LIMIT_GB


if __name__ == "__main__":
    sys.exit(main())
