"""Reading settings as Kafka 0.8.2 does (`kafka.utils.VerifiableProperties`), with its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from zkconsumer.errors import IllegalArgumentException, NumberFormatException

#: What Java's `Integer.parseInt` takes: decimal digits of any script of the basic plane.
_INT = re.compile(r"[+-]?\d+")
_LAST_OF_THE_BASIC_PLANE = "\uffff"
_DIGITS_LIMIT = 1000  # Python refuses to read much longer ones
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def missing(key: str) -> IllegalArgumentException:
    """The error for a required setting that is not there."""
    return IllegalArgumentException(f"requirement failed: Missing required property '{key}'")


class Properties:
    """Settings as text. It remembers which keys were read, so that it can name the unknown ones."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)
        self._asked: dict[str, None] = {}

    def required(self, key: str, default: str | None = None) -> str:
        """Raises IllegalArgumentException when it is missing and has no default; empty passes."""
        found = self.optional(key)
        if found is None:
            found = default
        if found is None:
            raise missing(key)
        return found

    def text(self, key: str, default: str) -> str:
        value = self.optional(key)
        return default if value is None else value

    def optional(self, key: str) -> str | None:
        self._asked[key] = None
        return self._values.get(key)

    def number(self, key: str, default: int) -> int:
        """A 32-bit whole number. Raises NumberFormatException."""
        text = self.optional(key)
        if text is None:
            return default
        if len(text) < _DIGITS_LIMIT and _INT.fullmatch(text) and max(text) <= _LAST_OF_THE_BASIC_PLANE:
            number = int(text)
            if _INT_MIN <= number <= _INT_MAX:
                return number
        raise NumberFormatException(f'For input string: "{text}"')

    def boolean(self, key: str, default: bool) -> bool:
        """Exactly `true` or `false`. Raises IllegalArgumentException."""
        text = self.optional(key)
        if text is None:
            return default
        if text not in ("true", "false"):
            raise IllegalArgumentException(
                f"requirement failed: Unacceptable value for property '{key}', "
                "boolean values must be either 'true' or 'false'"
            )
        return text == "true"

    def given(self, key: str) -> bool:
        return key in self._values

    def unknown(self) -> tuple[str, ...]:
        """The keys that were never read, sorted; those that begin with `external` are accepted."""
        return tuple(key for key in sorted(self._values) if key not in self._asked and not key.startswith("external"))
