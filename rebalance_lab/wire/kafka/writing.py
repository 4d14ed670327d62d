"""Writes the functions that write a message. Each is `write(x, w)`: the structure, and what takes a piece of bytes."""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgspec

from rebalance_lab.wire.kafka import primitives
from rebalance_lab.wire.kafka.schema import NUMBERS, STRUCT, Field, fields_of
from rebalance_lab.wire.kafka.source import UUID_LAYOUT, Part, Source

NAMESPACE: dict[str, Any] = {
    "uvarint": primitives.uvarint,
    "numbers": primitives.write_numbers,
    "check_uuid": primitives.check_uuid,
    "Invalid": primitives.Invalid,
}


class Writer:
    """Writes into `source` what writes the structures of its message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._functions: dict[type[msgspec.Struct], str] = {}
        self._run: list[Part] = []

    def function(self, struct: type[msgspec.Struct]) -> str:
        """The name of the function that writes `struct`."""
        if struct not in self._functions:
            live, tagged = self._source.live(struct), self._source.tagged(struct)
            for each in (*live, *tagged):
                if each.struct is not None:
                    self.function(each.struct)
            self._functions[struct] = f"write_{len(self._functions)}"
            self._source.line(0, f"def {self._functions[struct]}(x, w):")
            self._absent(struct)
            for each in live:
                self._field(each, 1)
            self._flush(1)
            if self._source.flexible:
                self._tags(tagged)
            self._source.line(1, "return")  # a structure may have no fields
        return self._functions[struct]

    def _absent(self, struct: type[msgspec.Struct]) -> None:
        """Refuse a value that this version would lose."""
        for each in fields_of(struct):
            if self._source.version not in each.wire.versions and not each.wire.ignorable:
                default = self._source.constant(each.default)
                text = f"if x.{each.name} != {default}: raise Invalid('this version does not have the field')"
                self._source.line(1, text, Part(each.name))

    # -- fields -----------------------------------------------------------------------------

    def _field(self, each: Field, depth: int, w: str = "w") -> None:
        kind, flexible, value = each.wire.kind, self._source.is_flexible(each), f"x.{each.name}"
        nullable = self._source.version in each.wire.nullable
        if kind in NUMBERS:
            self._run.append(Part(each.name, value, NUMBERS[kind]))
        elif kind == "uuid":
            self._source.line(depth, f"check_uuid({value})", Part(each.name, value, UUID_LAYOUT))
            self._run.append(Part(each.name, value, UUID_LAYOUT))
        elif kind == STRUCT:
            self._flush(depth, w)
            self._struct(each, value, depth, w, nullable=nullable)
        elif kind.startswith("[]"):
            self._array(each, value, depth, w, nullable=nullable, flexible=flexible)
        else:
            self._text(Part(each.name, value), kind, depth, w, nullable=nullable, flexible=flexible)

    def _flush(self, depth: int, w: str = "w") -> None:
        """Write what stands side by side and has a fixed size."""
        if self._run:
            pack = self._source.constant(Struct(">" + "".join(part.layout for part in self._run)).pack)
            self._source.line(depth, f"{w}({pack}({', '.join(part.value for part in self._run)}))", *self._run)
            self._run = []

    def _length(self, part: Part, depth: int, w: str, *, nullable: bool, flexible: bool) -> None:
        """The length of what the variable `part.value` holds, in `part.layout` where it is not compact."""
        length = f"len({part.value})"
        if not flexible:
            value = f"-1 if {part.value} is None else {length}" if nullable else length
            self._run.append(part._replace(value=value))
            self._flush(depth, w)
            return
        self._flush(depth, w)
        length = f"(0 if {part.value} is None else {length} + 1)" if nullable else f"{length} + 1"
        self._source.line(depth, f"{w}(uvarint({length}))", part)

    def _text(
        self, part: Part, kind: str, depth: int, w: str, *, nullable: bool, flexible: bool, item: str | None = None
    ) -> None:
        """A string or bytes."""
        name = f"s_{part.field}"
        text = kind == "string"
        self._source.line(depth, f"{name} = {part.value}", part, items=item)
        if text and nullable:
            self._source.line(depth, f"if {name} is not None: {name} = {name}.encode()", part, items=item)
        elif text:
            self._source.line(depth, f"{name} = {name}.encode()", part, items=item)
        length = Part(part.field, name, "h" if text else "i")
        self._length(length, depth, w, nullable=nullable, flexible=flexible)
        self._source.line(depth, f"if {name}: {w}({name})", part, items=item)

    def _struct(self, each: Field, value: str, depth: int, w: str, *, nullable: bool) -> None:
        assert each.struct is not None, f"{each.name} names no structure"
        part = Part(each.name, value)
        write = f"{self.function(each.struct)}({value}, {w})"
        if nullable:
            self._source.line(depth, f"if {value} is None: {w}(b'\\xff')", part)
            self._source.line(depth, f"else: {w}(b'\\x01'); {write}", part)
        else:
            self._source.line(depth, write, part)

    def _array(self, each: Field, value: str, depth: int, w: str, *, nullable: bool, flexible: bool) -> None:
        kind = each.wire.kind.removeprefix("[]")
        name = f"a_{each.name}"
        part = Part(each.name, value)
        self._source.line(depth, f"{name} = {value}", part)
        self._length(Part(each.name, name, "i"), depth, w, nullable=nullable, flexible=flexible)
        if nullable:
            self._source.line(depth, f"if {name} is None: {name} = ()", part)
        if kind in NUMBERS:
            write = self._source.constant(primitives.NUMBERS_WRITERS[kind])
            short = f"{write}[len({name})](*{name}) if len({name}) <= {primitives.SHORT}"
            self._source.line(depth, f"if {name}: {w}({short} else numbers({name}, {NUMBERS[kind]!r}))", part)
            return
        self._source.line(depth, f"for i in {name}:")
        if kind == STRUCT:
            assert each.struct is not None, f"{each.name} names no structure"
            self._source.line(depth + 1, f"{self.function(each.struct)}(i, {w})", part, items=name)
        elif kind == "uuid":
            self._source.line(depth + 1, f"check_uuid(i); {w}(i)", part, items=name)
        else:
            self._text(Part(each.name, "i"), kind, depth + 1, w, nullable=False, flexible=flexible, item=name)

    # -- tagged fields ----------------------------------------------------------------------

    def _tags(self, tagged: list[Field]) -> None:
        """Write the tagged fields that do not have their default."""
        line = self._source.line
        if not tagged:
            line(1, "w(b'\\x00')")
            return
        line(1, "t = []")
        for each in tagged:
            default = self._source.constant(each.default)
            line(1, f"if x.{each.name} is not {default} and x.{each.name} != {default}:", Part(each.name))
            line(2, "o = []; u = o.append")
            self._field(each, 2, "u")
            self._flush(2, "u")
            line(2, f"o = b''.join(o); t.append(uvarint({each.wire.tag}) + uvarint(len(o)) + o)")
        line(1, "w(uvarint(len(t)))")
        line(1, "if t: w(b''.join(t))")
