"""Pages of the documentation site that are made from code and from the project's root: a hook of mkdocs.

- `reference/checks.md` and `reference/scenarios.md`: every check and every scenario that is registered.
- `reference/rebalance_lab.md` and `reference/zkconsumer.md`: every public name; mkdocstrings fills in its docstring.
- CONTRIBUTING.md and CHANGELOG.md, which are beside `docs/`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # mkdocs does not search the folder in which it is started

import rebalance_lab  # noqa: E402
import zkconsumer  # noqa: E402
from rebalance_lab.checks import CHECKS  # noqa: E402
from rebalance_lab.subjects.zk_group.subject import common_parameters  # noqa: E402
from rebalance_lab.trials.plan import Parameter, value_text  # noqa: E402
from rebalance_lab.trials.scenario import scenario, scenario_names  # noqa: E402


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs calls this to get further files, before it reads the navigation."""
    for path, lines in {
        "reference/checks.md": checks(),
        "reference/scenarios.md": scenarios(),
        "reference/rebalance_lab.md": public(rebalance_lab),
        "reference/zkconsumer.md": public(zkconsumer),
        "CONTRIBUTING.md": from_root("CONTRIBUTING.md"),
        "CHANGELOG.md": from_root("CHANGELOG.md"),
    }.items():
        files.append(File.generated(config, path, content="\n".join(lines) + "\n"))
    return files


def from_root(name: str) -> Iterator[str]:
    """A page from the project's root, with links that work in `docs/`."""
    yield (ROOT / name).read_text("utf-8").replace("](docs/", "](")


def checks() -> Iterator[str]:
    yield from (
        "# Checks",
        "",
        f"The lab has {len(CHECKS)} checks. Each one reads the recorded history of a trial and reports *clean*,"
        " *violated* with the events that prove it, or *unknown*. A check looks for an anomaly, which no trial without"
        " a fault may show, or tests a statement, which may be true or false in any trial.",
        "",
    )
    for name, check in CHECKS.items():
        yield from (f"## {name}", "", check.meaning, "")
        yield f"- Looks for: {'whether a statement holds' if check.statement else 'an anomaly'}"
        yield f"- Compares: {', '.join(check.compares)}"
        yield f"- Planted bugs that it reports: {', '.join(f'`{each.bug}`' for each in check.plants) or 'none'}"
        yield from ("", explained(check.judge), "")


def scenarios() -> Iterator[str]:
    names = scenario_names()
    yield from (
        "# Scenarios",
        "",
        f"The lab has {len(names)} scenarios. `rebalance-lab run NAME` runs one of them, `--set SETTING=VALUE` changes"
        " a setting, and `--control` runs it without its fault.",
        "",
        "## Common settings",
        "",
        "Most scenarios have these. A scenario's own table has the settings that it adds, and those for which it has"
        " another default.",
        "",
    )
    common = common_parameters()
    yield from table(common)
    for name in names:
        found = scenario(name)
        yield from (f"## {name}", "", f"{found.summary[0].upper()}{found.summary[1:]}.", "")
        _, _, more = explained(sys.modules[found.script.__module__]).partition("\n\n")
        yield from (more, "", f"Claims: {', '.join(found.claims) or 'none'}. Worlds: {', '.join(found.worlds)}.", "")
        yield from table([each for each in found.parameters if each not in common])
        missing = sorted({each.name for each in common} - {each.name for each in found.parameters})
        if missing:
            yield from (f"It does not have the common settings {', '.join(f'`{each}`' for each in missing)}.", "")


def table(parameters: Sequence[Parameter]) -> Iterator[str]:
    if parameters:
        yield from ("| setting | default | allowed | meaning |", "| --- | --- | --- | --- |")
    for each in parameters:
        meaning = each.help.replace("|", "\\|")
        yield f"| `{each.name}` | {default(each)} | {allowed(each)} | {meaning} |"
    yield ""


def default(parameter: Parameter) -> str:
    if parameter.default == "":
        return "empty"
    unit = f" {parameter.unit}" if parameter.unit not in {"", parameter.name} else ""
    return f"{value_text(parameter.default)}{unit}"


def allowed(parameter: Parameter) -> str:
    if isinstance(parameter.default, bool):
        return "true, false"
    if isinstance(parameter.default, int):
        return (
            f"{parameter.minimum} to {parameter.maximum}"
            if parameter.minimum is not None
            else f"up to {parameter.maximum}"
        )
    return ", ".join(each or "empty" for each in parameter.choices) or "any text"


def explained(of: object) -> str:
    """A docstring, or nothing."""
    return inspect.getdoc(of) or ""


def public(module: ModuleType) -> Iterator[str]:
    """Every name of a module's `__all__`, in groups."""
    yield from (f"# {module.__name__}", "", explained(module), "")
    found = {name: getattr(module, name) for name in module.__all__}
    order = {"Functions": inspect.isfunction, "Classes": is_class, "Errors": is_error, "Types": is_type}
    for title, belongs in order.items():
        names = [name for name, each in found.items() if belongs(each)]
        if names:
            yield from (f"## {title}", "")
        for name in names:
            yield from (f"::: {home(name, found[name])}.{name}", "    options:")
            yield from (f"      heading: {name}", f"      toc_label: {name}", "      heading_level: 3", "")


def is_error(each: object) -> bool:
    return inspect.isclass(each) and issubclass(each, BaseException)


def is_class(each: object) -> bool:
    return inspect.isclass(each) and not is_error(each)


def is_type(each: object) -> bool:
    return not inspect.isfunction(each) and not inspect.isclass(each)


def home(name: str, of: object) -> str:
    """The module that defines a public name. A type alias does not record it, so loaded modules are searched."""
    if not is_type(of):
        return str(of.__module__)
    ours = (each for each in sys.modules.values() if each.__name__.startswith("rebalance_lab."))
    return next(each.__name__ for each in ours if getattr(each, name, None) is of)
