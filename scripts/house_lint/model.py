"""What a rule sees and what it says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file. `name` is its path from the project's root, with slashes."""

    name: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule. `line` counts from 1."""

    module: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.rule}: {self.message}"


Rule = Callable[[Module], Iterator[Problem]]


class Unreadable(Exception):
    """A file is no Python. The message names it."""


def parse(name: str, text: str) -> Module:
    """A module from its text. Raises Unreadable."""
    try:
        return Module(name, text, ast.parse(text))
    except SyntaxError as error:
        raise Unreadable(f"{name}:{error.lineno}: {error.msg}") from error


def load(root: Path, path: Path) -> Module:
    """A module from its file. Raises Unreadable."""
    name = path.relative_to(root).as_posix()
    try:
        return parse(name, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"{name}: {error}") from error
