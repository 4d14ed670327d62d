"""What a user of the demo waits for: its first picture, all of it, and verdicts on its store afterwards.

Run: python -m benchmarks.demo_store [--against CHECKOUT] [--json]

`--against`: another checkout of the lab, set up in its `.venv`, whose demo runs before and whose times stand beside
these. Exits with 1 when the first picture takes longer than half a minute, verdicts longer than two seconds if
nothing is new, or longer than a quarter of a minute after one new trial.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from rebalance_lab.cli.exit_codes import AS_EXPECTED, UNKNOWN

#: In seconds: the first page with a picture; verdicts without a new trial; verdicts with one.
LIMITS_S = {"first_picture_s": 30.0, "nothing_new_s": 2.0, "one_new_s": 15.0}

#: How often verdicts are asked for, of which the median counts.
TIMES = 5

#: No command takes so long.
LIMIT_S = 1200

_LOOK_S = 0.05

Lab = tuple[str, Path]
"""The Python of a checkout, and its folder."""


def timed(lab: Lab, *arguments: str | Path) -> float:
    """Seconds that a command line takes. Raises CalledProcessError if it prints no answer, or ends otherwise than as
    expected or unknown: the demo's trials leave some readings unknown."""
    python, folder = lab
    began_s = time.perf_counter()
    ended = subprocess.run(
        [python, "-m", "rebalance_lab", *map(str, arguments)],
        cwd=folder,
        check=False,
        timeout=LIMIT_S,
        capture_output=True,
    )
    taken_s = time.perf_counter() - began_s
    if ended.returncode not in (AS_EXPECTED, UNKNOWN) or not ended.stdout:
        raise subprocess.CalledProcessError(ended.returncode, ended.args, ended.stdout, ended.stderr)
    return taken_s


def demo(lab: Lab, store: Path) -> dict[str, float]:
    """Seconds until the demo has written its first page, and until its end. Raises CalledProcessError."""
    python, folder = lab
    began_s, picture_s = time.perf_counter(), None
    with subprocess.Popen(
        [python, "-m", "rebalance_lab", "demo", "--store", str(store)],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while process.poll() is None and time.perf_counter() - began_s < LIMIT_S:
                if picture_s is None and any(store.rglob("*.html")):
                    picture_s = time.perf_counter() - began_s
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK_S)
        finally:
            process.kill()
    if process.returncode != 0 or picture_s is None:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return {"first_picture_s": picture_s, "whole_s": time.perf_counter() - began_s}


def measured(lab: Lab, store: Path) -> dict[str, float]:
    """The demo, and then verdicts on its store: without a new trial, and after one. Medians of seconds."""
    found = demo(lab, store)
    found["nothing_new_s"] = statistics.median(timed(lab, "claims", "--store", store) for _ in range(TIMES))
    one_new = []
    for number in range(TIMES):
        timed(lab, "run", "zombie", "--seed", str(1_000_000 + number), "--store", store)
        one_new.append(timed(lab, "claims", "--store", store))
    return {**found, "one_new_s": statistics.median(one_new)}


def show(found: Mapping[str, Mapping[str, float]]) -> None:
    """A row for each time, with a column for each checkout."""
    print(f"{'':18}" + "".join(f"{name:>9}" for name in found))
    for name in next(iter(found.values())):
        print(f"{name:18}" + "".join(f"{each[name]:9.2f}" for each in found.values()))


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    labs: dict[str, Lab] = {}
    if given.against is not None:
        python = given.against / ".venv/bin/python"
        if not python.exists():
            parser.error(f"--against {given.against}: there is no {python}; run scripts/setup there")
        labs["other"] = (str(python.absolute()), given.against)
    labs["this"] = (sys.executable, Path.cwd())
    found = {}
    for name, lab in labs.items():
        with tempfile.TemporaryDirectory(prefix="demo-store-") as store:
            found[name] = measured(lab, Path(store))
    if given.json:
        print(json.dumps(found))
    else:
        show(found)
    return int(any(found["this"][name] > limit_s for name, limit_s in LIMITS_S.items()))


if __name__ == "__main__":
    sys.exit(main())
