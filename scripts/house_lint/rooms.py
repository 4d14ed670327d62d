"""Which rules hold where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.house_lint.model import Module, Problem, Rule, load
from scripts.house_lint.protocol import async_generator, swallowed_cancel, unstable_identity, world_import
from scripts.house_lint.sets import set_iteration
from scripts.house_lint.sizes import function_size, module_size

#: Rooms whose code runs in every world, and what of the rest is ours.
PROTOCOL_ROOMS = (
    "rebalance_lab/assignors",
    "rebalance_lab/broker",
    "rebalance_lab/faults",
    "rebalance_lab/scenarios",
    "rebalance_lab/zkclient",
    "controller",
    "newcoordinator",
    "zkconsumer",
)
ALL_ROOMS = ("rebalance_lab", "controller", "newcoordinator", "zkconsumer", "tests", "benchmarks", "scripts")

PROTOCOL_RULES: tuple[Rule, ...] = (
    world_import,
    async_generator,
    set_iteration,
    unstable_identity,
    swallowed_cancel,
)
HOUSE_RULES: tuple[Rule, ...] = (module_size, function_size)


def problems_of(module: Module) -> Iterator[Problem]:
    """Every problem of one module, by the rules of its room."""
    inside = any(module.name.startswith(f"{room}/") for room in PROTOCOL_ROOMS)
    for rule in (*HOUSE_RULES, *PROTOCOL_RULES) if inside else HOUSE_RULES:
        yield from rule(module)


def files_of(root: Path, paths: Sequence[Path] = ()) -> list[Path]:
    """The Python files to read: below `paths`, or in all rooms of the project at `root`."""
    places = list(paths) or [root / room for room in ALL_ROOMS]
    found = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))]
    return sorted(set(found))


def lint(root: Path, paths: Sequence[Path] = ()) -> list[Problem]:
    """All problems, by file and line. Raises model.Unreadable."""
    found = [problem for file in files_of(root, paths) for problem in problems_of(load(root, file))]
    return sorted(found, key=lambda problem: (problem.module, problem.line, problem.rule))
