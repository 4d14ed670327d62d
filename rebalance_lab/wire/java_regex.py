"""Java's regular expressions, as far as Python can evaluate them.

Topic filters are Java's. Most of that language is Python's too, but some texts mean something else
there (`{`, `\\Z`, `(?P…)`, `[a&&b]`, digits beyond ASCII). So a filter is read once by Java's rules
and written anew for Python. A text that Java refuses is refused as Java does; a text that Java takes
and this translator does not know is refused by name, never guessed.

Known and equal: alternatives, groups (also named, atomic, look-around), greedy, reluctant and
possessive quantifiers, classes with ranges, `\\Q…\\E`, the escapes of characters, `\\d \\s \\w
\\b` and their opposites, `\\p{Alpha}` and the other classes of POSIX, `(?i)`, `(?s)` and `(?m)` at
the beginning or as `(?i:…)`, back references of one digit or by name.
Not known: unions and intersections of classes, Unicode properties, `\\h \\v \\R \\X \\G \\N`, the
flags d, u, U and x, flags that are set in the middle, quantifiers upon quantifiers, and
whatever else Python's `re` does not take (look-behind without a fixed length).

The package `regex` does not replace it. Given the filter as it is (V1, ASCII), it differs from Java
in 43 of the 356 recorded answers (tests/wire): it takes 12 patterns that Java refuses (`{`, `a{,3}`,
`[a-\\d]`, `(?#c)a`), refuses 29 that Java takes (`\\Q`, `\\k<x>`, `\\x{41}`, `\\cA`, `(?i-)a`),
misreads `[\\0101]`, and runs out of memory on `a{2147483648}`. To find what Java refuses, all of the
text has to be read, which is what this module is.

Behind it `regex` evaluates what `re` has accepted, because it can be given a time limit: `(a|a)*[bc]`
takes centuries on a name of 70 letters, in Java as in Python. `regex` writes repetitions out, so their
size is limited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import regex


class InvalidPattern(ValueError):
    """Java would not compile it. The message is close to Java's own description."""


class UnknownConstruct(ValueError):
    """Java takes it, this lab does not. The message names what it is."""


@lru_cache(maxsize=256)  # every member evaluates the filters of all others, in each attempt
def java_pattern(text: str) -> regex.Pattern[str]:
    """A pattern whose `fullmatch` answers what Java's `String.matches` answers for an ASCII name. Its argument
    `timeout` limits the processor time, in seconds; `fullmatch` raises TimeoutError then.

    Raises InvalidPattern where Java raises PatternSyntaxException, and UnknownConstruct.
    """
    translated = _Translator(text).translate()
    try:
        re.compile(translated, re.ASCII)  # it knows less than `regex`, and no more than Java
        return regex.compile(translated, regex.ASCII)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise UnknownConstruct(f"what Python's regular expressions cannot do ({error})") from None


_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_HEXADECIMAL = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})")
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})")
_CONTROL = re.compile(r"c(.)", re.DOTALL)
_HIGHEST = 0x10FFFF

_LETTERS = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

#: What newer Javas know: a character's name, a line break, a grapheme, the last match, blanks.
_UNKNOWN = "NRXGhHvV"

#: The same in both languages, for ASCII.
_SHORTHANDS = frozenset("dDsSwW")

#: What begins a class with a name.
_CLASSES = frozenset("pP")

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

_FLAGS = "ims"
_JAVA_FLAGS = "idmsuxU"
_GROUP_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")
_FLAGS_TEXT = re.compile(rf"([{_JAVA_FLAGS}]*)(?:-([{_JAVA_FLAGS}]*))?([:)])")
_REPETITION = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_REPETITION_LIMIT = 2**31 - 1

#: More repetitions than a name has characters. Larger numbers mean the same.
_LONGEST_NAME = 1 << 15

#: Characters of a pattern whose repetitions are written out. A million of them would take a gigabyte.
_SIZE_LIMIT = 50_000

#: Openings that mean the same in both languages.
_PLAIN_OPENINGS = ("?:", "?=", "?!", "?<=", "?<!", "?>")

#: Places, not characters; what Java's `\\Z` means is not what Python's does.
_ANCHORS = {"A": "\\A", "b": "\\b", "B": "\\B", "z": "\\Z", "Z": "(?=\\n?\\Z)"}


class _Reader:
    """A text and a position in it: what it takes to read a character, also an escaped one."""

    def __init__(self, text: str) -> None:
        self.position = 0
        self._text = text

    @property
    def ended(self) -> bool:
        return self.position >= len(self._text)

    def peek(self, ahead: int = 0) -> str:
        """The next character, or one further ahead; empty beyond the end."""
        return self._text[self.position + ahead : self.position + ahead + 1]

    def take(self) -> str:
        found = self.peek()
        self.position += 1
        return found

    def skip(self, text: str) -> bool:
        """Take `text` if it stands here."""
        found = self._text.startswith(text, self.position)
        if found:
            self.position += len(text)
        return found

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Take what the pattern matches here."""
        found = pattern.match(self._text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def quoted(self) -> str:
        """What stands between `\\Q` and `\\E`, or the end."""
        end = self._text.find("\\E", self.position)
        found = self._text[self.position : end if end >= 0 else None]
        self.position = end + 2 if end >= 0 else len(self._text)
        return found

    def escaped(self) -> str:
        """The character that stands behind a backslash. Raises InvalidPattern, UnknownConstruct."""
        for pattern, base in ((_OCTAL, 8), (_HEXADECIMAL, 16), (_UNICODE, 16)):
            found = self.match(pattern)
            if found is not None:
                code = int(next(digits for digits in found.groups() if digits), base)
                if code > _HIGHEST:
                    raise InvalidPattern("Hexadecimal codepoint is too big")
                return chr(code)
        if self.peek() == "c" and self.peek(1) == "\\":  # Java looks for \\Q before anything else
            raise UnknownConstruct("\\c with a backslash")
        if control := self.match(_CONTROL):
            return chr(ord(control[1]) ^ 64)
        kind = self.take()
        if kind in _LETTERS:
            return _LETTERS[kind]
        if kind and kind in _UNKNOWN:
            raise UnknownConstruct(f"\\{kind}")
        if not kind or (kind.isascii() and kind.isalnum()):
            raise InvalidPattern("Illegal/unsupported escape sequence")
        return kind


class _Translator(_Reader):
    """One pass over Java's text; `_parts` are Python's."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._parts: list[str] = []
        self._size = 0  # of the group so far, with repetitions written out
        self._last_size = 0  # of its last atom
        self._outer_sizes: list[int] = []  # of the groups around it
        self._names: dict[str, None] = {}
        self._quantifiable = False

    def translate(self) -> str:
        while not self.ended:
            handler = self._HANDLERS.get(self.peek())
            if handler is None:
                self._atom(re.escape(self.take()))
            else:
                handler(self)
        if self._outer_sizes:
            raise InvalidPattern("Unclosed group")
        return "".join(self._parts)

    def _atom(self, text: str, size: int = 1) -> None:
        self._parts.append(text)
        self._size += size
        self._last_size = size
        self._quantifiable = True

    # -- what a character begins ------------------------------------------------------------

    def _any(self) -> None:
        self._atom(self.take())

    def _alternative(self) -> None:
        self._parts.append(self.take())
        self._quantifiable = False

    def _quantifier(self) -> None:
        sign = self.peek()
        if sign == "{":
            quantifier = self._repetition()
        else:
            if not self._quantifiable:
                raise InvalidPattern(f"Dangling meta character '{sign}'")
            quantifier = self.take()
        if self.peek() in ("?", "+"):
            quantifier += self.take()
        self._parts.append(quantifier)
        self._quantifiable = False
        if self.peek() == "{":
            raise UnknownConstruct("a quantifier upon a quantifier")

    def _repetition(self) -> str:
        found = self.match(_REPETITION)
        if found is None:
            raise InvalidPattern("Illegal repetition")
        least, comma, most = int(found[1]), found[2], found[3]
        highest = int(most) if most else least
        if least > highest or highest > _REPETITION_LIMIT:
            raise InvalidPattern("Illegal repetition range")
        if not self._quantifiable:
            raise UnknownConstruct("a repetition of nothing")
        least, highest = min(least, _LONGEST_NAME), min(highest, _LONGEST_NAME)
        self._size += self._last_size * max(least - 1, 0)
        if self._size > _SIZE_LIMIT:
            raise UnknownConstruct(f"repetitions of more than {_SIZE_LIMIT} characters in all")
        return f"{{{least}{',' if comma else ''}{highest if most else ''}}}"

    def _close(self) -> None:
        if not self._outer_sizes:
            raise InvalidPattern("Unmatched closing ')'")
        inner, self._size = self._size, self._outer_sizes.pop()
        self._atom(self.take(), inner)

    def _opening(self) -> None:
        at_start = self.position == 0
        self.take()
        for plain in _PLAIN_OPENINGS:
            if self.skip(plain):
                self._begin(f"({plain}")
                return
        if self.skip("?<"):
            self._begin(f"(?P<{self._new_name()}>")
        elif self.skip("?"):
            self._flags(at_start)
        else:
            self._begin("(")

    def _begin(self, opening: str) -> None:
        self._parts.append(opening)
        self._outer_sizes.append(self._size)
        self._size = 0
        self._quantifiable = False

    def _new_name(self) -> str:
        name = self._name()
        if name in self._names:
            raise InvalidPattern(f"Named capturing group <{name}> is already defined")
        self._names[name] = None
        return name

    def _name(self) -> str:
        found = self.match(_GROUP_NAME)
        if found is None:
            raise InvalidPattern("capturing group name does not start with a Latin letter")
        if not self.skip(">"):
            raise InvalidPattern("named capturing group is missing trailing '>'")
        return found[0]

    def _flags(self, at_start: bool) -> None:
        found = self.match(_FLAGS_TEXT)
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
        if self.skip("\\Q"):
            for letter in self.quoted():
                self._atom(re.escape(letter))
            return
        self.take()
        kind = self.peek()
        if kind in _ANCHORS:
            self.take()
            self._atom(_ANCHORS[kind])
        elif kind and kind in "123456789":
            self._back_reference()
        elif self.skip("k<"):
            name = self._name()
            if name not in self._names:
                raise InvalidPattern(f"named capturing group <{name}> does not exist")
            self._atom(f"(?P={name})")
        elif kind in _SHORTHANDS:
            self._atom(f"\\{self.take()}")
        elif kind in _CLASSES:
            inside, negated = self._named()
            self._atom(f"[{'^' if negated else ''}{inside}]")
        else:
            self._atom(re.escape(self.escaped()))

    def _back_reference(self) -> None:
        digit = self.take()
        if self.peek().isdigit():
            raise UnknownConstruct("a back reference of several digits")
        self._atom(f"\\{digit}")

    # -- classes of characters ---------------------------------------------------------------

    def _named(self) -> tuple[str, bool]:
        """`p{Alpha}` behind a backslash: what stands in its class, and whether that is negated."""
        found = self.match(_NAMED)
        if found is None:
            raise InvalidPattern("Unclosed character family")
        name = found[2] if found[2] is not None else found[3]
        if name not in _POSIX:
            raise UnknownConstruct(f"the class \\{found[1]}{{{name}}}")
        return _POSIX[name], found[1] == "P"

    def _class(self) -> None:
        """A whole `[…]`. A `]` that comes first is a character of the class."""
        self.take()
        parts = ["[^" if self.skip("^") else "["]
        while len(parts) == 1 or self.peek() != "]":
            if self.ended:
                raise InvalidPattern("Unclosed character class")
            parts.append(self._item())
        self.take()
        self._atom(f"{''.join(parts)}]")

    def _item(self) -> str:
        """A quotation, a class within the class, a character, or a range."""
        if self.skip("\\Q"):
            return "".join(re.escape(letter) for letter in self.quoted())
        if self.peek() == "\\" and (inner := self._inner()) is not None:
            return inner
        first = self._character()
        if self.peek() != "-" or self.peek(1) in ("]", ""):
            return re.escape(first)
        self.take()
        if self.peek() == "[":
            raise UnknownConstruct("a class within a class")
        if self.peek() == "\\" and self.peek(1) in _SHORTHANDS | _CLASSES:
            raise InvalidPattern("Illegal character range")
        last = self._character()
        if last < first:
            raise InvalidPattern("Illegal character range")
        return f"{re.escape(first)}-{re.escape(last)}"

    def _inner(self) -> str | None:
        if self.peek(1) in _SHORTHANDS:
            return self.take() + self.take()
        if self.peek(1) not in _CLASSES:
            return None
        self.take()
        inside, negated = self._named()
        if negated:
            raise UnknownConstruct("a negated \\P within a class")
        return inside

    def _character(self) -> str:
        if self.peek() == "[":
            raise UnknownConstruct("a class within a class")
        if self.peek() == "&" and self.peek(1) == "&":
            raise UnknownConstruct("an intersection of classes (&&)")
        if self.skip("\\"):
            return self.escaped()
        return self.take()

    _HANDLERS: ClassVar[dict[str, Callable[[_Translator], None]]] = {
        **dict.fromkeys("*+?{", _quantifier),
        **dict.fromkeys(".^$", _any),
        "\\": _escape,
        "[": _class,
        "(": _opening,
        ")": _close,
        "|": _alternative,
    }
