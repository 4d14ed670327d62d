"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

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


PLANT = "plant"

StoreOption = Annotated[Path, typer.Option("--store", help="Where trials are kept.", metavar="DIR")]
WorldOption = Annotated[
    World, typer.Option("--world", help="Virtual time, OS processes on a real ZooKeeper, or containers.")
]
_RULES_HELP = "As the articles have it, or as Kafka 0.8.2.2 shipped it."
RulesOption = Annotated[Rules, typer.Option("--rules", help=_RULES_HELP)]
#: None where nobody named any: see `rules_of`.
TrialRulesOption = Annotated[Rules | None, typer.Option("--rules", help=_RULES_HELP, show_default=str(Rules.described))]
MembersOption = Annotated[
    Members,
    typer.Option(
        "--members", help="Ours, Kafka 0.8.2.2's own consumers, or both in turn (ours as shipped); needs Maven."
    ),
]
ControlOption = Annotated[bool, typer.Option("--control", help="The same scenario without its fault.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting of the scenario; also plant=NAME for a planted bug.", metavar="K=V"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ZooKeeperOption = Annotated[str, typer.Option("--zookeeper", help="A ZooKeeper.", metavar="HOST:PORT")]

TrialArgument = Annotated[str, typer.Argument(help="A trial's folder, or its name in the store.", metavar="TRIAL")]

DEFAULT_STORE = Path("trials")


def trial_folder(trial: str, store: Path) -> Path:
    """The folder that a TrialArgument means. Raises Failure."""
    for folder in (Path(trial), store / trial):
        if folder.is_dir():
            return folder
    raise Failure(f"there is no trial {trial}, neither as a folder nor in the store {store}")


def rules_of(rules: Rules | None, members: Members) -> str:
    """The plan's rule set, as described where none is named. What real members follow is no choice;
    beside them ours are as shipped. Raises Failure for rules that are named then."""
    if members is Members.ours:
        return rules or Rules.described
    if rules is not None:
        raise Failure(f"--rules {rules} says nothing of real members; leave it out with --members {members}")
    return members


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


def grid(texts: Sequence[str] | None) -> list[dict[str, str]]:
    """Every combination of `k=a,b,c` texts, the last key changing fastest. Raises Failure."""
    choices = {key: value.split(",") for key, value in key_values(texts).items()}
    return [dict(zip(choices, combination, strict=True)) for combination in product(*choices.values())]


def without_plant(settings: dict[str, str]) -> tuple[dict[str, str], str | None]:
    """The settings of the scenario, and the planted bug (None for none or an empty name)."""
    rest = {key: value for key, value in settings.items() if key != PLANT}
    return rest, settings.get(PLANT) or None
