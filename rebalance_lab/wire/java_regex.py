"""Java's regular expressions, as far as Python can evaluate them.

Topic filters are Java's. Most of that language is Python's too, but some texts mean another
thing there (`{`, `\\Z`, `(?P…)`, `[a&&b]`, digits beyond ASCII), so a filter is read once by
Java's rules and written anew for Python. A text that Java refuses is refused as Java does; one
that Java takes and this translator does not know is refused by name, never guessed.

Known and equal: alternatives, groups (also named, atomic, look-around), greedy, reluctant and
possessive quantifiers, classes with ranges, `\\Q…\\E`, the escapes of characters, `\\d \\s \\w
\\b` and their opposites, `\\p{Alpha}` and the other classes of POSIX, `(?i)`, `(?s)` and `(?m)` at
the beginning or as `(?i:…)`, back references of one digit or by name.
Not known: unions and intersections of classes, Unicode properties, `\\h \\v \\R \\X \\G \\N`, the
flags d, u, U and x, flags that are set in the middle, quantifiers upon quantifiers, and
whatever else Python's `re` does not take (look-behind without a fixed length).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

from rebalance_lab.wire.java_classes import CLASSES, SHORTHANDS, Classes
from rebalance_lab.wire.java_scanner import InvalidPattern, Scanner, UnknownConstruct, escape

_FLAGS = "ims"
_JAVA_FLAGS = "idmsuxU"
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_FLAGS_TEXT = re.compile(rf"([{_JAVA_FLAGS}]*)(?:-([{_JAVA_FLAGS}]*))?([:)])")
_REPETITION = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_REPETITION_LIMIT = 2**31 - 1

#: Openings that mean the same in both languages.
_PLAIN_OPENINGS = ("?:", "?=", "?!", "?<=", "?<!", "?>")


@lru_cache(maxsize=256)  # every member evaluates the filters of all others, in each attempt
def java_pattern(text: str) -> re.Pattern[str]:
    """A pattern whose `fullmatch` answers what Java's `String.matches` answers for an ASCII name.

    Raises InvalidPattern where Java raises PatternSyntaxException, and UnknownConstruct.
    """
    translated = _Translator(text).translate()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UnknownConstruct(f"what Python's regular expressions cannot do ({error})") from None


class _Translator:
    """One pass over the text. `parts` is what Python gets."""

    def __init__(self, text: str) -> None:
        self._scanner = Scanner(text)
        self._parts: list[str] = []
        self._open = 0
        self._names: dict[str, None] = {}
        self._quantifiable = False

    def translate(self) -> str:
        scanner = self._scanner
        while not scanner.ended:
            handler = self._HANDLERS.get(scanner.peek())
            if handler is None:
                self._atom(escape(scanner.take()))
            else:
                handler(self)
        if self._open:
            raise InvalidPattern("Unclosed group")
        return "".join(self._parts)

    def _atom(self, text: str) -> None:
        self._parts.append(text)
        self._quantifiable = True

    # -- what a character begins ------------------------------------------------------------

    def _any(self) -> None:
        self._atom(self._scanner.take())

    def _alternative(self) -> None:
        self._parts.append(self._scanner.take())
        self._quantifiable = False

    def _class(self) -> None:
        self._atom(Classes(self._scanner).read())

    def _quantifier(self) -> None:
        scanner = self._scanner
        sign = scanner.peek()
        if sign == "{":
            quantifier = self._repetition()
        else:
            if not self._quantifiable:
                raise InvalidPattern(f"Dangling meta character '{sign}'")
            quantifier = scanner.take()
        if not scanner.ended and scanner.peek() in "?+":
            quantifier += scanner.take()
        self._parts.append(quantifier)
        self._quantifiable = False
        if not scanner.ended and scanner.peek() == "{":
            raise UnknownConstruct("a quantifier upon a quantifier")

    def _repetition(self) -> str:
        found = self._scanner.match(_REPETITION)
        if found is None:
            raise InvalidPattern("Illegal repetition")
        least, comma, most = int(found[1]), found[2], found[3]
        highest = int(most) if most else least
        if least > highest or highest > _REPETITION_LIMIT:
            raise InvalidPattern("Illegal repetition range")
        if not self._quantifiable:
            raise UnknownConstruct("a repetition of nothing")
        return f"{{{least}{',' if comma else ''}{most or ''}}}"

    def _close(self) -> None:
        if not self._open:
            raise InvalidPattern("Unmatched closing ')'")
        self._open -= 1
        self._atom(self._scanner.take())

    def _opening(self) -> None:
        scanner = self._scanner
        at_start = scanner.position == 0
        scanner.take()
        for plain in _PLAIN_OPENINGS:
            if scanner.skip(plain):
                self._begin(f"({plain}")
                return
        if scanner.skip("?<"):
            self._begin(f"(?P<{self._new_name()}>")
        elif scanner.skip("?"):
            self._flags(at_start)
        else:
            self._begin("(")

    def _begin(self, opening: str) -> None:
        self._parts.append(opening)
        self._open += 1
        self._quantifiable = False

    def _new_name(self) -> str:
        name = self._name()
        if name in self._names:
            raise InvalidPattern(f"Named capturing group <{name}> is already defined")
        self._names[name] = None
        return name

    def _name(self) -> str:
        found = self._scanner.match(_GROUP_NAME)
        if found is None:
            raise InvalidPattern("capturing group name does not start with a Latin letter")
        if not self._scanner.skip(">"):
            raise InvalidPattern("named capturing group is missing trailing '>'")
        return found[0]

    def _flags(self, at_start: bool) -> None:
        found = self._scanner.match(_FLAGS_TEXT)
        if found is None:
            raise InvalidPattern("Unknown inline modifier")
        on, off, end = found[1], found[2] or "", found[3]
        strange = [flag for flag in on + off if flag not in _FLAGS]
        if strange:
            raise UnknownConstruct(f"the flag {strange[0]}")
        if end == ":":
            minus = f"-{off}" if off else ""
            self._begin(f"(?{on}{minus}:")
        elif not at_start:
            raise UnknownConstruct("flags that are set in the middle")
        elif on:
            self._parts.append(f"(?{on})")  # off: nothing was on yet

    # -- escapes ----------------------------------------------------------------------------

    def _escape(self) -> None:
        scanner = self._scanner
        if scanner.skip("\\Q"):
            for letter in scanner.quoted():
                self._atom(escape(letter))
            return
        scanner.take()
        kind = scanner.peek() if not scanner.ended else ""
        if kind in _ANCHORS:
            scanner.take()
            self._atom(_ANCHORS[kind])
        elif kind and kind in "123456789":
            self._back_reference()
        elif scanner.skip("k<"):
            name = self._name()
            if name not in self._names:
                raise InvalidPattern(f"named capturing group <{name}> does not exist")
            self._atom(f"(?P={name})")
        elif kind in SHORTHANDS:
            self._atom(f"\\{scanner.take()}")
        elif kind in CLASSES:
            inside, negated = Classes(scanner).named()
            self._atom(f"[{'^' if negated else ''}{inside}]")
        else:
            self._atom(escape(scanner.escaped()))

    def _back_reference(self) -> None:
        digit = self._scanner.take()
        if not self._scanner.ended and self._scanner.peek().isdigit():
            raise UnknownConstruct("a back reference of several digits")
        self._atom(f"\\{digit}")

    _HANDLERS: ClassVar[dict[str, Callable[[_Translator], None]]] = {
        **dict.fromkeys("*+?{", _quantifier),
        **dict.fromkeys(".^$", _any),
        "\\": _escape,
        "[": _class,
        "(": _opening,
        ")": _close,
        "|": _alternative,
    }


#: Places, not characters; what Java's `\\Z` means is not what Python's does.
_ANCHORS = {"A": "\\A", "b": "\\b", "B": "\\B", "z": "\\Z", "Z": "(?=\\n?\\Z)"}
