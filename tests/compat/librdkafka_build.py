"""librdkafka's own test programs: fetched as Debian's source package, built once, and kept under build/.

Nothing of it is committed. The package comes from the machine's own Debian mirror, with apt lists of its own, because
source packages are rarely switched on. apt checks signature and digest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

VERSION = "2.0.2-1"
UPSTREAM = VERSION.partition("-")[0]
FOLDER = Path(__file__).parents[2] / "build" / f"librdkafka-{VERSION}"

#: What must be there to build it, and the package that brings it.
NEEDED_COMMANDS = {"apt-get": "apt", "dpkg-source": "dpkg-dev", "g++": "build-essential", "make": "build-essential"}
NEEDED_HEADERS = {"zlib.h": "zlib1g-dev", "zstd.h": "libzstd-dev", "rapidjson/document.h": "rapidjson-dev"}
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

_LIMIT_S = 500


class Unavailable(Exception):
    """It cannot be fetched or built here. The message says why."""


def sources() -> Path:
    """Where the tests' sources are, once they were fetched."""
    return FOLDER / f"librdkafka-{UPSTREAM}" / "tests"


def problem() -> str | None:
    """Why the tests cannot be built here; None if they are built already, or nothing is known to be missing."""
    if (sources() / "test-runner").exists():
        return None
    missing = {package for command, package in NEEDED_COMMANDS.items() if shutil.which(command) is None}
    missing |= {package for header, package in NEEDED_HEADERS.items() if not (Path("/usr/include") / header).exists()}
    if "apt" in missing or not KEYRING.exists():
        return "librdkafka's tests come as Debian's source package, and this is no Debian"
    return f"apt-get install {' '.join(sorted(missing))}" if missing else None


def runner() -> Path:
    """The program that holds all the tests. Raises Unavailable."""
    program = sources() / "test-runner"
    if not program.exists():
        why = problem()
        if why is not None:
            raise Unavailable(why)
        # A build that was broken off leaves no half folder behind.
        scratch = FOLDER.with_name(f"{FOLDER.name}.{os.getpid()}")
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            _fetch(scratch)
            _build(scratch / f"librdkafka-{UPSTREAM}")
            scratch.rename(FOLDER)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return program


def _fetch(folder: Path) -> None:
    release = _release()
    known = mirrors(_run(["apt-get", "-q", "update", "--print-uris"], folder), release)
    if not known:
        raise Unavailable(f"apt knows no mirror of Debian {release}")
    lists = folder / "apt" / "sources.list"
    (lists.parent / "lists").mkdir(parents=True)
    lists.write_text("".join(f"deb-src [signed-by={KEYRING}] {each} {release} main\n" for each in known))
    settings = {
        "Dir::Etc::sourcelist": lists,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": lists.parent / "lists",
        "Dir::Cache": lists.parent,
        "APT::Sandbox::User": "",  # the folder is the caller's
        "APT::Update::Post-Invoke-Success::": "",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in settings.items())]
    _run([*apt, "update"], folder)
    _run([*apt, "source", f"librdkafka={VERSION}"], folder)


def mirrors(uris: str, release: str) -> list[str]:
    """Where a machine gets a release of Debian from, by what `apt-get update --print-uris` prints. That needs no lists:
    machines that were made from an image often have none."""
    return sorted(set(re.findall(rf"^'(\S+)/dists/{re.escape(release)}/InRelease'", uris, re.MULTILINE)))


def _release() -> str:
    """Its name."""
    found = re.search(r'^VERSION_CODENAME="?(\w+)', Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else "?"


def _build(folder: Path) -> None:
    _run(["./configure", "--disable-ssl", "--disable-gssapi", "--disable-curl"], folder)
    for room, target in (("src", "librdkafka.a"), ("src-cpp", "librdkafka++.a"), ("tests", "test-runner")):
        _run(["nice", "make", "-j2", "-C", room, target], folder)


def _run(command: Sequence[str], folder: Path) -> str:
    """What it prints. Raises Unavailable."""
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_LIMIT_S,
    )
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout
