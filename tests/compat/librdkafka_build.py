"""librdkafka's own test programs: fetched as Debian's source package, built once, and kept under build/.

Nothing of it is committed. The package comes from the machine's own Debian mirror, with apt lists of its own, because
source packages are rarely switched on. apt checks signature and digest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
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
    lists = folder / "apt" / "sources.list"
    (lists.parent / "lists").mkdir(parents=True)
    lists.write_text("".join(f"deb-src [signed-by={KEYRING}] {each} main\n" for each in _mirrors()))
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


def _mirrors() -> Iterator[str]:
    """`URI SUITE` of where this machine gets its release of Debian from. Raises Unavailable."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    name = release.get("VERSION_CODENAME", "").strip('"')
    told = _run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"], Path.cwd())
    found = sorted({line for line in told.splitlines() if line.split()[1:] == [name, "main"]})
    if not found:
        raise Unavailable(f"apt knows no source of Debian {name or '?'} main")
    for line in found:
        yield line.rpartition(" ")[0]


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
