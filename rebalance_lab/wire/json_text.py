"""JSON as Kafka 0.8 reads and writes it (`kafka.utils.Json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NoReturn

from rebalance_lab.wire.errors import KafkaException

INT_MIN, INT_MAX = -(2**31), 2**31 - 1

_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class _NotAnInt(Exception):
    """A number that Scala's `toInt` refuses."""


def _int(text: str) -> int:
    number = int(text)
    if not INT_MIN <= number <= INT_MAX:
        raise _NotAnInt
    return number


def _refuse(_text: str) -> NoReturn:
    raise _NotAnInt


def encode(value: object) -> str:
    """No blanks, maps in their own order, strings *not* escaped: that is how 0.8 writes.

    Takes mappings with text keys, sequences, text, booleans, ints. Raises TypeError otherwise.
    """
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f'"{key}":{encode(each)}' for key, each in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(encode(each) for each in value) + "]"
    raise TypeError(f"Kafka's JSON encoder knows no {type(value).__name__}: {value!r}")


def escaped(text: str) -> str:
    """A string with quotes, backslashes, slashes and control characters up to U+009F escaped, as in 0.8.2. Kafka 0.8.2
    escapes only the regex of a wildcard."""
    return "".join(_SHORT.get(letter) or _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code <= 0x1F or 0x7F <= code <= 0x9F else letter


def parse(text: str) -> object | None:
    """The value, or None if the text is not JSON: Scala's parser does not distinguish this from null.

    Every number is read as a 32-bit int; others raise KafkaException, as in 0.8.2.
    """
    try:
        return json.loads(text, strict=False, parse_int=_int, parse_float=_refuse, parse_constant=_refuse)  # type: ignore[no-any-return]
    except (_NotAnInt, RecursionError):
        raise KafkaException(f"Can't parse json string: {text}") from None
    except ValueError:
        return None
