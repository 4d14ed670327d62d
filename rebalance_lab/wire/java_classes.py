"""Classes of characters in Java's regular expressions: `[…]`, `\\p{…}` and the short ones."""

from __future__ import annotations

import re

from rebalance_lab.wire.java_scanner import InvalidPattern, Scanner, UnknownConstruct, escape

#: The same in both languages, for ASCII.
SHORTHANDS = frozenset("dDsSwW")

#: What begins a class with a name.
CLASSES = frozenset("pP")

_PUNCTUATION = re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

#: POSIX classes, which are ASCII in Java; others need Unicode's tables.
_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": "\\x00-\\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": _PUNCTUATION,
    "Graph": f"a-zA-Z0-9{_PUNCTUATION}",
    "Print": f"a-zA-Z0-9{_PUNCTUATION}\\x20",
    "Blank": "\\x20\\t",
    "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": "\\x20\\t\\n\\x0b\\f\\r",
}

_NAMED = re.compile(r"([pP])(?:\{([^}]*)\}|(.))", re.DOTALL)


class Classes:
    """Reads one class where the scanner stands."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def named(self) -> tuple[str, bool]:
        """`p{Alpha}` behind a backslash: what stands in its class, and whether that is negated."""
        found = self._scanner.match(_NAMED)
        if found is None:
            raise InvalidPattern("Unclosed character family")
        name = found[2] if found[2] is not None else found[3]
        if name not in _POSIX:
            raise UnknownConstruct(f"the class \\{found[1]}{{{name}}}")
        return _POSIX[name], found[1] == "P"

    def read(self) -> str:
        """A whole `[…]`. A `]` that comes first is a character of the class."""
        scanner = self._scanner
        scanner.take()
        parts = ["[^" if scanner.skip("^") else "["]
        while len(parts) == 1 or scanner.peek() != "]":
            if scanner.ended:
                raise InvalidPattern("Unclosed character class")
            parts.append(self._item())
        scanner.take()
        return f"{''.join(parts)}]"

    def _item(self) -> str:
        """A quotation, a class within the class, a character, or a range."""
        scanner = self._scanner
        if scanner.skip("\\Q"):
            return "".join(escape(letter) for letter in scanner.quoted())
        if scanner.peek() == "\\" and (inner := self._inner()) is not None:
            return inner
        first = self._character()
        if scanner.peek() != "-" or scanner.peek(1) in ("]", ""):
            return escape(first)
        scanner.take()
        if scanner.peek() == "[":
            raise UnknownConstruct("a class within a class")
        if scanner.peek() == "\\" and scanner.peek(1) in SHORTHANDS | CLASSES:
            raise InvalidPattern("Illegal character range")
        last = self._character()
        if last < first:
            raise InvalidPattern("Illegal character range")
        return f"{escape(first)}-{escape(last)}"

    def _inner(self) -> str | None:
        scanner = self._scanner
        if scanner.peek(1) in SHORTHANDS:
            return scanner.take() + scanner.take()
        if scanner.peek(1) not in CLASSES or scanner.peek(1) == "":
            return None
        scanner.take()
        inside, negated = self.named()
        if negated:
            raise UnknownConstruct("a negated \\P within a class")
        return inside

    def _character(self) -> str:
        scanner = self._scanner
        if scanner.peek() == "[":
            raise UnknownConstruct("a class within a class")
        if scanner.peek() == "&" and scanner.peek(1) == "&":
            raise UnknownConstruct("an intersection of classes (&&)")
        if scanner.skip("\\"):
            return scanner.escaped()
        return scanner.take()
