"""Python source for one version of a message: a function for each structure in it, generated, compiled and run.

For each line it is known which field the line handles. An error is traced to its field by its line, so the functions
need not keep track of where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import msgspec

from rebalance_lab.wire.kafka.schema import NUMBERS, STRUCT, Field, fields_of

UUID_LAYOUT = "16s"


class Part(NamedTuple):
    """A field that a line reads or writes. `value`: the variable or expression. `layout`: of `struct`, if used."""

    field: str
    value: str = ""
    layout: str = ""


class Line(NamedTuple):
    """What one line of source handles. `items`: the variable that says which item of a loop it is."""

    parts: tuple[Part, ...]
    items: str | None


@dataclass(slots=True)
class Source:
    """The functions for one version of a message, line by line.

    `file`: their file name in tracebacks. `namespace`: their globals. `handled`: what each of the `lines` handles.
    """

    file: str
    version: int
    flexible: bool
    namespace: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    handled: list[Line] = field(default_factory=list)

    def line(self, depth: int, text: str, *parts: Part, items: str | None = None) -> None:
        self.lines.append("    " * depth + text)
        self.handled.append(Line(parts, items))

    def constant(self, value: object) -> str:
        """The name by which the functions know `value`."""
        name = f"k{len(self.namespace)}"
        self.namespace[name] = value
        return name

    def is_flexible(self, each: Field) -> bool:
        own = each.wire.flexible
        return self.flexible and (own is None or self.version in own)

    def live(self, struct: type[msgspec.Struct]) -> list[Field]:
        """The fields that this version has in their place, so not tagged."""
        return [
            each
            for each in fields_of(struct)
            if self.version in each.wire.versions and self.version not in each.wire.tagged
        ]

    def tagged(self, struct: type[msgspec.Struct]) -> list[Field]:
        found = [each for each in fields_of(struct) if self.version in each.wire.tagged]
        return sorted(found, key=lambda each: each.wire.tag or 0)

    def compiled(self, function: str) -> Callable[..., Any]:
        """Run the source; the function of that name."""
        exec(compile("\n".join(self.lines), self.file, "exec"), self.namespace)
        found: Callable[..., Any] = self.namespace[function]
        return found

    def steps(self, traceback: TracebackType | None) -> Iterator[tuple[Line, FrameType]]:
        """The lines of this source that an error went through, the outermost first."""
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self.file:
                yield self.handled[traceback.tb_lineno - 1], traceback.tb_frame
            traceback = traceback.tb_next

    def smallest(self, kind: str, struct: type[msgspec.Struct] | None, *, flexible: bool) -> int:
        """The fewest bytes that a value can take: what a count of items is checked against."""
        if kind == STRUCT:
            assert struct is not None, "a structure has a class"
            inner = sum(
                self.smallest(each.wire.kind, each.struct, flexible=self.is_flexible(each))
                for each in self.live(struct)
                if not (each.wire.kind == STRUCT and self.version in each.wire.nullable)
            )
            return inner + self.flexible
        if kind in NUMBERS:
            return Struct(NUMBERS[kind]).size
        if kind == "uuid":
            return 16
        return 1 if flexible else 2 if kind == "string" else 4
