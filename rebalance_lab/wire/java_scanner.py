"""Reading the text of a Java regular expression, and the characters that it escapes."""

from __future__ import annotations

import re

_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_HEXADECIMAL = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})")
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})")
_CONTROL = re.compile(r"c(.)", re.DOTALL)
_HIGHEST = 0x10FFFF

_LETTERS = {"a": "\a", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

#: What newer Javas know: a character's name, a line break, a grapheme, the last match, blanks.
_UNKNOWN = "NRXGhHvV"


class InvalidPattern(ValueError):
    """Java would not compile it. The message is close to Java's own description."""


class UnknownConstruct(ValueError):
    """Java takes it, this lab does not. The message names what it is."""


class Scanner:
    """A text and a position in it."""

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


def escape(letter: str) -> str:
    """One character, for Python, inside of a class and outside."""
    return re.escape(letter)
