"""Mutation testing of the checks: `make mutants`, or `scripts/mutants.py MODULE…` for these modules only.

mutmut changes one thing at a time in a copy of the checks and of `analysis/trialwise`, and runs the
tests that reach the changed function. A change that no test notices has survived. For each module this
script writes the numbers (`overlaps.json`) and the survivors as diffs (`overlaps.diff`) to .mutants/results/.
It prints the score of every module that has results there; the others are `not run`. docs/mutants.md
explains how to read them.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / ".mutants"
WORK = FOLDER / "work"
RESULTS = FOLDER / "results"
#: The folders whose modules are mutated.
ROOMS = ("rebalance_lab/checks", "rebalance_lab/analysis/trialwise")
COPIED = ("rebalance_lab", "zkconsumer", "controller", "newcoordinator", "tests", "pyproject.toml")
#: mutmut's names of a mutant that a test noticed.
KILLED = ("killed", "timeout", "segfault")
MUTMUT = (sys.executable, "-c", "from mutmut.__main__ import cli; cli()", "run", "--max-children", "1")


def modules() -> dict[str, Path]:
    """Name -> path within the project."""
    paths = [path.relative_to(PROJECT) for room in ROOMS for path in sorted((PROJECT / room).glob("*.py"))]
    return {_name(path): path for path in paths if (PROJECT / path).read_text().strip()}


def _name(path: Path) -> str:
    return (
        path.parent.name
        if path.stem == "__init__"
        else f"{'trialwise/' if 'trialwise' in path.parts else ''}{path.stem}"
    )


def undecorated(source: str) -> str:
    """The source with each decorator `@d` of a function replaced by `f = d(f)` below it. This means the same to
    Python, but mutmut skips functions with decorators (properties, `@once`). Classes keep theirs."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    for node in sorted(functions, key=lambda node: -node.lineno):
        if not node.decorator_list or node.end_lineno is None:
            continue
        value = node.name
        for decorator in reversed(node.decorator_list):
            value = f"{ast.unparse(decorator)}({value})"
        lines.insert(node.end_lineno, f"{' ' * node.col_offset}{node.name} = {value}")
        del lines[node.decorator_list[0].lineno - 1 : node.lineno - 1]
    return "\n".join(lines) + "\n"


def prepare(chosen: dict[str, Path]) -> None:
    """Make a fresh copy of the project, in which mutmut changes these modules only."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, WORK / name)
    for path in chosen.values():
        (WORK / path).write_text(undecorated((PROJECT / path).read_text()))
    settings = WORK / "pyproject.toml"
    only = json.dumps([str(path) for path in chosen.values()])
    settings.write_text(settings.read_text().replace("[tool.mutmut]\n", f"[tool.mutmut]\nonly_mutate = {only}\n"))


def run() -> None:
    """Let mutmut make and test the mutants. Its output goes to .mutants/mutmut.log."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    log = FOLDER / "mutmut.log"
    with log.open("w") as words:
        done = subprocess.run(MUTMUT, cwd=WORK, env=environment, stdout=words, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise SystemExit(f"mutants: mutmut failed; see the end of {log}")


def outcomes(path: Path) -> dict[str, str]:
    """Mutant -> its outcome, in mutmut's words."""
    meta = WORK / "mutants" / f"{path}.meta"
    if not meta.exists():
        return {}  # nothing in it to mutate
    return {name: status_by_exit_code[code] for name, code in json.loads(meta.read_text())["exit_code_by_key"].items()}


def keep(name: str, path: Path) -> None:
    """Write the numbers and the survivors of one module."""
    found = outcomes(path)
    target = RESULTS / name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".json").write_text(json.dumps(Counter(found.values())))
    living = [(mutant, outcome) for mutant, outcome in found.items() if outcome not in KILLED]
    with contextlib.chdir(WORK):
        diffs = [f"# {mutant}: {outcome}\n{get_diff_for_mutant(mutant, path=path)}\n" for mutant, outcome in living]
    target.with_suffix(".diff").write_text("".join(diffs))


def table(names: Iterable[str]) -> Iterator[str]:
    """The score by module, as the docs have it: from this run and from earlier ones."""
    yield "| module | mutants | killed | score |"
    yield "| --- | ---: | ---: | ---: |"
    total: Counter[str] = Counter()
    for name in names:
        results = RESULTS / f"{name}.json"
        if results.exists():
            counts = Counter(json.loads(results.read_text()))
            total += counts
            yield from _row(name, counts)
        else:
            yield f"| {name} | | | not run |"
    yield from _row("all", total)


def _row(name: str, counts: Counter[str]) -> Iterator[str]:
    """None for a module in which there is nothing to change."""
    mutants, killed = sum(counts.values()), sum(counts[word] for word in KILLED)
    if mutants:
        yield f"| {name} | {mutants} | {killed} | {100 * killed / mutants:.1f} % |"


def main(words: list[str]) -> None:
    known = modules()
    unknown = sorted(set(words) - set(known))
    if unknown:
        raise SystemExit(f"mutants: no module {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = {name: known[name] for name in words} if words else known
    prepare(chosen)
    run()
    for name, path in chosen.items():
        keep(name, path)
    print("\n".join(table(known)))


if __name__ == "__main__":
    main(sys.argv[1:])
