"""Writes the functions that read a message.

Each is `read(d, p, e, b)`: the bytes, a position, the end of the bytes, and how many more items arrays may hold. It
returns the structure and the position after it.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgspec

from rebalance_lab.wire.kafka import primitives
from rebalance_lab.wire.kafka.schema import NUMBERS, STRUCT, Field
from rebalance_lab.wire.kafka.source import UUID_LAYOUT, Part, Source

NAMESPACE: dict[str, Any] = {
    "uvarint": primitives.read_uvarint,
    "odd_length": primitives.odd_length,
    "check": primitives.check_items,
    "numbers": primitives.read_numbers,
    "Invalid": primitives.Invalid,
}


class Reader:
    """Writes into `source` what reads the structures of its message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._functions: dict[type[msgspec.Struct], str] = {}
        self._run: list[Part] = []

    def function(self, struct: type[msgspec.Struct]) -> str:
        """The name of the function that reads `struct`."""
        if struct not in self._functions:
            live, tagged = self._source.live(struct), self._source.tagged(struct)
            for each in (*live, *tagged):
                if each.struct is not None:
                    self.function(each.struct)
            self._functions[struct] = f"read_{len(self._functions)}"
            self._source.line(0, f"def {self._functions[struct]}(d, p, e, b):")
            for each in live:
                self._field(each, 1)
            self._flush(1)
            if self._source.flexible:
                self._tags(tagged)
            given = ", ".join(f"{each.name}=f_{each.name}" for each in (*live, *tagged))
            self._source.line(1, f"return {self._source.constant(struct)}({given}), p")
        return self._functions[struct]

    # -- fields -----------------------------------------------------------------------------

    def _field(self, each: Field, depth: int) -> None:
        kind, flexible = each.wire.kind, self._source.is_flexible(each)
        nullable = self._source.version in each.wire.nullable
        name = f"f_{each.name}"
        if kind in NUMBERS or kind == "uuid":
            self._run.append(Part(each.name, name, NUMBERS.get(kind, UUID_LAYOUT)))
        elif kind == STRUCT:
            self._flush(depth)
            self._struct(each, name, depth, nullable=nullable)
        else:
            self._length(each.name, kind, depth, flexible=flexible)
            if kind.startswith("[]"):
                self._array(each, name, depth, nullable=nullable, flexible=flexible)
            else:
                self._text(Part(each.name, name), kind, depth, nullable=nullable)

    def _flush(self, depth: int) -> None:
        """Read what stands side by side and has a fixed size."""
        if self._run:
            layout = Struct(">" + "".join(part.layout for part in self._run))
            names = ", ".join(part.value for part in self._run)
            read = self._source.constant(layout.unpack_from)
            self._source.line(depth, f"{names}, = {read}(d, p); p += {layout.size}", *self._run)
            self._run = []

    def _length(self, name: str, kind: str, depth: int, *, flexible: bool) -> None:
        """Read a length into `n`, -1 for null."""
        part = Part(name, "n", "h" if kind == "string" else "i")
        if not flexible:
            self._run.append(part)
            self._flush(depth)
            return
        self._flush(depth)
        self._source.line(depth, "n = d[p]", part)
        self._source.line(depth, "if n < 128: n -= 1; p += 1", part)
        self._source.line(depth, "else: n, p = uvarint(d, p); n -= 1", part)

    def _text(self, part: Part, kind: str, depth: int, *, nullable: bool, to: str | None = None) -> None:
        """A string or bytes of length `n`."""
        if nullable:
            self._source.line(depth, f"if n == -1: {part.value} = None", part)
            self._source.line(depth, "else:")
            depth += 1
        # Java reads bytes that are not UTF-8 as U+FFFD, too; a client's name for itself may have such.
        value = "d[p:q].decode('utf-8', 'replace')" if kind == "string" else "d[p:q]"
        self._source.line(depth, "q = p + n", part)
        self._source.line(depth, "if n < 0 or q > e: odd_length(n, e - p)", part, items=to)
        self._source.line(depth, f"{part.value} = {value}; p = q", part, items=to)

    def _struct(self, each: Field, name: str, depth: int, *, nullable: bool) -> None:
        assert each.struct is not None, f"{each.name} names no structure"
        part = Part(each.name, name)
        read = f"{name}, p = {self.function(each.struct)}(d, p, e, b)"
        if nullable:
            self._source.line(depth, f"{name} = None; n = d[p]; p += 1", part)
            self._source.line(depth, f"if n < 128: {read}", part)
        else:
            self._source.line(depth, read, part)

    def _array(self, each: Field, name: str, depth: int, *, nullable: bool, flexible: bool) -> None:
        """An array of `n` items."""
        kind = each.wire.kind.removeprefix("[]")
        part = Part(each.name, name)
        if kind in NUMBERS:
            read, size = self._source.constant(primitives.NUMBERS_READERS[kind]), Struct(NUMBERS[kind]).size
            if nullable:
                self._source.line(depth, f"if n == -1: {name} = None", part)
            short = f"if 0 <= n <= {primitives.SHORT}: {name} = {read}[n](d, p); p += {size} * n"
            self._source.line(depth, f"el{short}" if nullable else short, part)
            self._source.line(depth, f"else: {name}, p = numbers(d, p, n, {NUMBERS[kind]!r}, b)", part)
            return
        if nullable:
            self._source.line(depth, f"if n == -1: {name} = None", part)
        self._source.line(depth, f"{'elif' if nullable else 'if'} n == 0: {name} = ()", part)
        self._source.line(depth, "else:")
        items = f"l_{each.name}"
        smallest = self._source.smallest(kind, each.struct, flexible=flexible)
        self._source.line(depth + 1, f"check(n, {smallest}, e - p, b)", part)
        self._source.line(depth + 1, f"{items} = []")
        self._source.line(depth + 1, "for _ in range(n):")
        self._item(each, kind, depth + 2, flexible=flexible)
        self._source.line(depth + 1, f"{name} = tuple({items})", part)

    def _item(self, each: Field, kind: str, depth: int, *, flexible: bool) -> None:
        items = f"l_{each.name}"
        part = Part(each.name, "i")
        if kind == STRUCT:
            assert each.struct is not None, f"{each.name} names no structure"
            self._source.line(depth, f"i, p = {self.function(each.struct)}(d, p, e, b)", part, items=items)
        elif kind == "uuid":
            self._source.line(depth, "i = d[p:p + 16]; p += 16", part, items=items)
        else:
            self._length(each.name, kind, depth, flexible=flexible)
            self._text(part, kind, depth, nullable=False, to=items)
        self._source.line(depth, f"{items}.append(i)")

    # -- tagged fields ----------------------------------------------------------------------

    def _tags(self, tagged: list[Field]) -> None:
        """Read the tagged fields; those that nobody knows are skipped."""
        line = self._source.line
        for each in tagged:
            line(1, f"f_{each.name} = {self._source.constant(each.default)}")
        tags = Part("tagged fields")
        line(1, "c = d[p]", tags)
        line(1, "if c == 0: p += 1")
        line(1, "else:")
        line(2, "c, p = uvarint(d, p)", tags)
        line(2, "check(c, 2, e - p, b)", tags)
        line(2, "for _ in range(c):")
        line(3, "t, p = uvarint(d, p); z, p = uvarint(d, p); z += p", tags)
        line(3, "if z > e: raise Invalid(f'a tagged field of {z - p} bytes, {e - p} left')", tags)
        for each in tagged:
            line(3, f"if t == {each.wire.tag}:")
            self._field(each, 4)
            self._flush(4)
            line(4, "if p != z: raise Invalid(f'its value ends at byte {p}, its size at {z}')", Part(each.name))
        line(3, "p = z")
