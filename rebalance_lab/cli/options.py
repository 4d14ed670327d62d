"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from rebalance_lab.analysis.uri import Place, StoreUri
from rebalance_lab.cli.failures import Failure


class World(StrEnum):
    simulated = "simulated"
    processes = "processes"
    containers = "containers"


class Rules(StrEnum):
    described = "described"
    shipped = "shipped"


class Members(StrEnum):
    ours = "ours"
    real = "real"
    mixed = "mixed"


class Brokers(StrEnum):
    ours = "ours"
    real = "real"


def place_named(text: str | Path) -> Place:
    """Raises BadParameter for an empty name."""
    if not str(text):
        raise typer.BadParameter("is empty; name a file or folder")
    return StoreUri.parse(str(text)) or Path(text)


def _folder_named(text: str | Path) -> Path:
    """Raises BadParameter for an empty name, which would be the current folder, and for a URI."""
    place = place_named(text)
    if isinstance(place, StoreUri):
        raise typer.BadParameter(
            "is a URI; only `sweep --master`, `claims`, `report` and `tables` reach one; name a folder"
        )
    return place


StoreOption = Annotated[
    Path, typer.Option("--store", help="Where trials are kept.", metavar="DIR", parser=_folder_named)
]
#: Of commands that reach a store through Spark.
AnyStoreOption = Annotated[
    Any,  # a Place: typer knows no unions
    typer.Option(
        "--store",
        help="Where trials are kept: a folder, or a URI that Spark knows, as hdfs://host:8020/trials.",
        metavar="DIR|URI",
        parser=place_named,
    ),
]
WorldOption = Annotated[
    World,
    typer.Option(
        "--world",
        help="simulated (in virtual time), processes (OS processes on a real ZooKeeper) or containers.",
        metavar="WORLD",
    ),
]
_RULES_HELP = "described: as in the articles; shipped: as in Kafka 0.8.2.2."
RulesOption = Annotated[Rules, typer.Option("--rules", help=_RULES_HELP, metavar="RULES")]
#: None if the option is left out: the first rule set of the scenario's subject, or that of real members.
TrialRulesOption = Annotated[
    str | None,
    typer.Option(
        "--rules",
        help=f"Groups: {_RULES_HELP} Brokers: kip-320, or an older way to truncate logs.",
        metavar="RULES",
        show_default="described, kip-320",
    ),
]
MembersOption = Annotated[
    Members,
    typer.Option(
        "--members",
        help="ours; real: consumers of Kafka 0.8.2.2 (needs Maven); mixed: both in turn, ours as shipped.",
        metavar="MEMBERS",
    ),
]
BrokersOption = Annotated[
    Brokers,
    typer.Option("--brokers", help="ours; real: brokers of Kafka 3.9.1 (needs Maven).", metavar="BROKERS"),
]
#: Spark has a thread and a process for each, and so many pieces in every table that it shuffles.
MOST_CORES = 256

#: Each has an interpreter of its own, of some 100 MB.
MOST_PROCESSES = 256

#: Of one command line; a simulated trial takes some milliseconds.
MOST_TRIALS = 1_000_000

ControlOption = Annotated[bool, typer.Option("--control", help="Run the scenario without its fault.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting of the scenario. plant=NAME plants a bug.", metavar="K=V"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
CoresOption = Annotated[
    int | None, typer.Option("--cores", help="Local cores for Spark. Default: all.", metavar="N", min=1, max=MOST_CORES)
]


def _with_few_cores(master: str | None) -> str | None:
    threads = re.match(r"local\[(\d+)", master or "")
    if threads is not None and int(threads[1]) > MOST_CORES:
        raise typer.BadParameter(f"{master}: at most {MOST_CORES} local cores")
    return master


MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master",
        help="Run on Spark: local[4], or a cluster that can reach the store.",
        metavar="URL",
        callback=_with_few_cores,
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", help="A setting of Spark's, as spark.hadoop.fs.s3a.endpoint=URL. It may be repeated.", metavar="K=V"
    ),
]
RejudgeOption = Annotated[
    bool, typer.Option("--rejudge", help="Judge every trial again, also those that were judged before.")
]
EventLogOption = Annotated[
    Path | None,
    typer.Option("--event-log", help="Write Spark's event log there, for its history server.", metavar="DIR"),
]
UiOption = Annotated[bool, typer.Option("--ui", help="Show Spark's web pages while the command runs.")]
ZooKeeperOption = Annotated[str, typer.Option("--zookeeper", help="The address of a ZooKeeper.", metavar="HOST:PORT")]

ScenarioArgument = Annotated[str, typer.Argument(help="A scenario; `scenarios` lists them.", metavar="SCENARIO")]
TrialArgument = Annotated[str, typer.Argument(help="A trial's folder, or its name in the store.", metavar="TRIAL")]

DEFAULT_STORE = Path("trials")


def trial_folder(trial: str, store: Path) -> Path:
    """The folder of a trial that is named by its path, or by its name in the store. Raises Failure."""
    if not trial:
        raise Failure("the name of a trial is empty")
    for folder in (Path(trial), store / trial):
        if folder.is_dir():
            return folder
    raise Failure(f"there is no trial {trial}, neither as a folder nor in the store {store}")


def key_values(texts: Sequence[str] | None, option: str = "--set") -> dict[str, str]:
    """`k=v` texts as a dict, in their order. Raises Failure: no `=`, no key, or a key twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Failure(f"{option} {text}: write it as key=value")
        if key in found:
            raise Failure(f"{option} {key} is given twice")
        found[key] = value
    return found


def settings_of_spark(texts: Sequence[str] | None) -> dict[str, str]:
    """Raises Failure for a setting that is none of Spark's."""
    found = key_values(texts, "--conf")
    for key in found:
        if not key.startswith("spark."):
            raise Failure(f"--conf {key}: the settings of Spark begin with spark.")
    return found


def choices(texts: Sequence[str] | None) -> dict[str, list[str]]:
    """`k=a,b,c` texts as the values of each key. Raises Failure, also for a value that is given twice."""
    found = {key: value.split(",") for key, value in key_values(texts).items()}
    for key, values in found.items():
        if twice := sorted({each for each in values if values.count(each) > 1}):
            raise Failure(f"--set {key}: {', '.join(twice)} is given twice")
    return found
