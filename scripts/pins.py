"""Write constraints.txt from the environment in which this runs: `make pins`.

The file lists every package that the project and its dev extra need, directly or not, with the installed version.
It has only names and versions; the user's pip settings say where packages come from.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

PROJECT = "rebalance-lab"
HEAD = "# Written by scripts/pins.py (`make pins`). Every package the project needs, at the version it is tested with."
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)\s*(\[[^]]*\])?\s*([^;]*)(?:;\s*(.*))?$")


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(project: str = PROJECT) -> dict[str, str]:
    """Package -> version, for every installed package that `project[dev]` needs here.

    A requirement with a marker may be missing: it may be for another platform.
    """
    found: dict[str, str] = {}
    pending = [(project, {"dev"})]
    seen: set[tuple[str, str]] = set()
    while pending:
        name, extras = pending.pop()
        for text in requires(name) or []:
            match = REQUIREMENT.match(text)
            if match is None:
                raise SystemExit(f"pins: cannot read the requirement {text!r} of {name}")
            marker = match[4] or ""
            wanted = re.findall(r"extra\s*==\s*['\"]([^'\"]+)['\"]", marker)
            if wanted and not extras.intersection(wanted):
                continue
            package = canonical(match[1])
            try:
                if package != project:  # an extra of the project may require another of its extras
                    found[package] = version(package)
            except PackageNotFoundError:
                if not marker:
                    raise SystemExit(f"pins: {name} needs {package}, which is not installed") from None
                continue
            for extra in sorted({"", *(match[2] or "").strip("[]").replace(" ", "").split(",")}):
                if (package, extra) not in seen:
                    seen.add((package, extra))
                    pending.append((package, {extra}))
    return found


def text() -> str:
    """The whole file."""
    return "\n".join([HEAD, *(f"{name}=={number}" for name, number in sorted(closure().items()))]) + "\n"


if __name__ == "__main__":
    target = Path(__file__).resolve().parent.parent / "constraints.txt"
    target.write_text(text(), encoding="utf-8")
    print(f"{target.name}: {len(closure())} packages, Python {sys.version.split()[0]}")
