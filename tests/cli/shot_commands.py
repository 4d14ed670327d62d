"""The command lines at which `test_cli_shots.py` fires signals."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace

from thorough import THOROUGH

from rebalance_lab.kernel.interruption import SIGNALS

#: Shots of each signal at each command; for a thorough run set more.
SHOTS = int(os.environ.get("REBALANCE_LAB_SHOTS", "1"))

#: How many shots of a command with a Spark are fired side by side: a thorough run has the machine for itself.
_SPARKS = 1 if SHOTS == 1 else len(os.sched_getaffinity(0))


#: A usual run shoots at one command with a Spark, `claims`, because each shot at such a command takes a minute of CPU
#: time. Only the commands WITH_EACH, which are short or the most used, get each signal. `kernel.interruption` handles
#: all signals alike, so every other command gets one of them in turn. SIGKILL goes to all.
USUAL = SHOTS == 1 and not THOROUGH
RARE = ("report", "tables")
WITH_EACH = ("scenarios", "checks", "run", "zookeeper", "topics", "produce", "consume")

#: Of the cluster that runs for all tests; it has one record.
TOPIC = "shots"


@dataclass(frozen=True, slots=True)
class Shot:
    """`arguments`: {zookeeper}, {bootstrap} and {trial} in them stand for those that the tests run and stored.
    `within_s`: when shots are fired, if not until the command's end. `foreground`: it runs until a signal ends it, and
    exits with 0 then. `live`: what its trials show, and so its exit code, may differ from time to time. `reads`: it
    gets a store with trials. `writes`: the names of what it writes in its folder, beside the store. `beside`: so many
    of its shots are fired side by side. `cold`: Python starts anew. `signals`: those that are sent, beside SIGKILL."""

    arguments: tuple[str, ...]
    within_s: float | None = None
    foreground: bool = False
    live: bool = False
    reads: bool = False
    writes: tuple[str, ...] = ()
    beside: int = 4
    cold: bool = False
    signals: tuple[signal.Signals, ...] = SIGNALS

    @property
    def name(self) -> str:
        words = [each.strip("{}") for each in self.arguments[:4] if not each.startswith("-")]
        return "-".join([*words, "cold"] if self.cold else words)

    @property
    def command(self) -> str:
        """`run`, or `history show`."""
        return " ".join(self.arguments[: 2 if self.arguments[0] in ("history", "whatif") else 1])

    @property
    def tidied_by(self) -> Shot:
        """A command that removes what this one leaves when it is killed."""
        if "--master" in self.arguments:  # Spark's temporary folders go with the next Spark
            return self
        return Shot(("sweep", "herd", "--seeds", "1") if self.command in WITH_POOLS else ("run", "herd"))

    @property
    def connects(self) -> bool:
        return bool({"{zookeeper}", "{bootstrap}"} & set(self.arguments))


ALL = (
    Shot(("scenarios",)),
    Shot(("scenarios",), cold=True),
    Shot(("checks",)),
    Shot(("run", "zombie")),
    Shot(("run", "zombie", "--world", "processes"), live=True),
    Shot(("run", "isr-election")),
    Shot(("sweep", "herd", "--seeds", "16")),
    *((Shot(("sweep", "herd", "--seeds", "4", "--master", "local[2]"), beside=_SPARKS),) if SHOTS > 1 else ()),
    Shot(("sweep", "leave", "--world", "processes", "--seeds", "2"), live=True),
    Shot(("claims",), reads=True, beside=_SPARKS),
    Shot(("report",), reads=True, beside=_SPARKS),
    Shot(("tables", "--out", "tables"), reads=True, writes=("tables",), beside=_SPARKS),
    Shot(("demo",), within_s=12.0, beside=2),  # the rest of it is other commands' work
    Shot(("zookeeper",), foreground=True),
    Shot(("zookeeper", "--nodes", "3"), foreground=True, beside=2),
    Shot(("cluster", "--brokers", "2"), foreground=True, beside=2),
    Shot(
        ("broker", "--zookeeper", "{zookeeper}", "--data", "data", "--id", "77"),
        foreground=True,
        writes=("data",),
        beside=1,
    ),
    Shot(("join", "--zookeeper", "{zookeeper}", "--group", "g", "--topic", TOPIC), foreground=True),
    Shot(("topics", "--bootstrap", "{bootstrap}", "--describe", TOPIC)),
    Shot(("produce", "--bootstrap", "{bootstrap}", "--topic", TOPIC), within_s=1.0),
    Shot(("consume", "--bootstrap", "{bootstrap}", "--topic", TOPIC), within_s=1.0),
    Shot(("replay", "{trial}")),
    Shot(("shrink", "{trial}", "--check", "belief_overlap", "--runs", "20")),
    Shot(("agree", "leave", "--live", "1", "--simulated", "20"), live=True),
    Shot(("explore", "--records", "1")),
    Shot(("history", "show", "{trial}")),
    Shot(("history", "compare", "{trial}", "{trial}")),
    Shot(("whatif", "assign"), within_s=0.3),
    Shot(("whatif", "place"), within_s=0.3),
)

COMMANDS = tuple(
    replace(shot, signals=(SIGNALS[number % len(SIGNALS)],)) if USUAL and shot.command not in WITH_EACH else shot
    for number, shot in enumerate(ALL)
)

#: Commands that no shot is aimed at, and why. There are none.
NOT_SHOT_AT: dict[str, str] = {}

#: Commands that run trials in several processes; the next of them removes what the processes of one have left.
WITH_POOLS = ("sweep", "agree", "demo")

#: They use temporary folders, and remove those of their killed predecessors.
SWEEPERS = ("claims", "report", "tables", "zookeeper", "cluster")
