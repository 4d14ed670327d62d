"""What a message class says of its bytes: which versions it has, and each field's type and versions.

The vocabulary is that of Kafka's message definitions. A range of versions is `3`, `0-4`, `2+` or `none`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, get_args, get_type_hints

import msgspec

#: Kafka's numbers -> the letter of `struct`, big-endian.
NUMBERS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
}

#: A nested structure; which one, says the field's annotation.
STRUCT = "struct"

ZERO_UUID = bytes(16)

_OPEN_END = 1 << 15


class Versions(NamedTuple):
    """A range of versions; both ends belong to it."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NO_VERSIONS = Versions(1, 0)


def read_versions(text: str) -> Versions:
    """A range as Kafka's definitions write it."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), _OPEN_END)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


@dataclass(frozen=True, slots=True)
class Wire:
    """How one field is written.

    `kind`: a number of NUMBERS, `string`, `bytes`, `records`, `uuid`, `struct`, or `[]` and one of these.
    `tag`: where it is a tagged field; it is one in the versions `tagged`. `flexible`: where the
    field's own flexible versions are others than its message's. A version that lacks the field drops
    its value if `ignorable`, and cannot be written otherwise.
    """

    kind: str
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    flexible: Versions | None
    ignorable: bool


def wire(
    kind: str,
    versions: str,
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "none",
    flexible: str | None = None,
    ignorable: bool = False,
) -> Wire:
    """A field's part of `Annotated`; Wire says what the parameters mean."""
    return Wire(
        kind,
        read_versions(versions),
        read_versions(nullable),
        tag,
        read_versions(tagged),
        None if flexible is None else read_versions(flexible),
        ignorable,
    )


class Message(msgspec.Struct, frozen=True):
    """A request, response, header or stored value: what can be encoded by itself."""

    VERSIONS: ClassVar[Versions]
    #: Those with compact lengths and tagged fields (KIP-482).
    FLEXIBLE: ClassVar[Versions]


class Field(NamedTuple):
    """One field of a structure. `struct`: the class of a nested one. `default` is NODEFAULT where it must be given."""

    name: str
    wire: Wire
    struct: type[msgspec.Struct] | None
    default: Any


@cache
def fields_of(struct: type[msgspec.Struct]) -> tuple[Field, ...]:
    """The fields of a message or of a structure in it, in the order of the wire."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(
        Field(each.name, next(_wires(hints[each.name])), next(_structs(hints[each.name]), None), _default(each))
        for each in msgspec.structs.fields(struct)
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _wires(hint: Any) -> Iterator[Wire]:
    return (each for each in get_args(hint) if isinstance(each, Wire))


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """The structures that a type names, at any depth."""
    for each in get_args(hint):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            yield each
        yield from _structs(each)
