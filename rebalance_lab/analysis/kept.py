"""What was computed once, kept in a file under a key: the results of a trial, and the analysis of a store.

A file holds two lines: a header (the key, and the SHA-256 of the body) and the body. What is read back was written
whole under the same key, or it is not used: then the caller computes it anew. So a file may be deleted at any time, two
processes may write the same file, and a place that cannot be written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from rebalance_lab.checks import CHECKS
from rebalance_lab.history.files import write_whole
from rebalance_lab.history.intervals import holdings_by_subject

#: The rooms whose code decides what a history shows.
JUDGING_ROOMS = ("analysis", "checks", "faults", "history", "kernel", "subjects", "wire")

#: The libraries that compute or store a result.
_LIBRARIES = ("msgspec", "numpy", "pyarrow", "pyspark", "scipy")

_PACKAGE = "rebalance_lab"
_ROOT = Path(__file__).parents[1]


class Header(msgspec.Struct, frozen=True):
    key: str
    body_sha256: str


def key_of(*parts: object) -> str:
    """A key of these parts, which must be what JSON can hold. Each part counts, and so does their order."""
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def keep(path: Path, key: str, body: bytes) -> None:
    """Write a body, of one line, under a key, in one rename. A place that cannot be written keeps nothing."""
    header = msgspec.json.encode(Header(key, hashlib.sha256(body).hexdigest()))
    try:
        write_whole(path, header + b"\n" + body)
    except OSError:  # of a store that is read-only or full; or another process wrote the same file first
        return


def kept(path: Path, key: str) -> bytes | None:
    """The body that was kept there under this key; None if there is none, or if it is not whole."""
    try:
        first, _, body = path.read_bytes().partition(b"\n")
        header = msgspec.json.decode(first, type=Header)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    whole = header.body_sha256 == hashlib.sha256(body).hexdigest()
    return body if whole and header.key == key else None


def code_that_judges() -> str | None:
    """A fingerprint of the code that judges: the sources of JUDGING_ROOMS, and the versions of Python and of the
    libraries. None if a check or a subject's intervals come from elsewhere: what their code depends on is not known, so
    their results are not kept."""
    declared = [*(check.judge for check in CHECKS.values()), *holdings_by_subject().values()]
    return _fingerprint() if all(_is_of_judging_room(each.__module__) for each in declared) else None


def _is_of_judging_room(module: str) -> bool:
    return any(module.startswith(f"{_PACKAGE}.{room}.") for room in JUDGING_ROOMS)


@cache
def _fingerprint() -> str:
    found = hashlib.sha256(platform.python_version().encode())
    for library in _LIBRARIES:
        found.update(f"{library} {_version(library)}\n".encode())
    for source in sorted(path for room in JUDGING_ROOMS for path in (_ROOT / room).rglob("*.py")):
        found.update(f"{source.relative_to(_ROOT)}\n".encode() + hashlib.sha256(source.read_bytes()).digest())
    return found.hexdigest()


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # as when another distribution brings the package
        return "unknown"
