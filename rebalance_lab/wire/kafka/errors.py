"""What can be wrong with bytes from outside, or with a message that is to be written."""

from __future__ import annotations

from rebalance_lab.wire.errors import KafkaException


class MalformedMessage(KafkaException):
    """Bytes that are not a message of this name and version: the only error of decoding.

    `message`: the class's name. `field`: the path of the field that could not be read, empty where the message as a
    whole is wrong. `offset`: where reading stopped, in bytes from the start of the data.
    """

    def __init__(self, message: str, version: int, field: str, offset: int, reason: str) -> None:
        super().__init__(f"{_place(message, version, field)}, at byte {offset}: {reason}")
        self.message = message
        self.version = version
        self.field = field
        self.offset = offset
        self.reason = reason


class UnwritableMessage(KafkaException):
    """A message that its version cannot express, or a value that its field cannot hold."""

    def __init__(self, message: str, version: int, field: str, reason: str) -> None:
        super().__init__(f"{_place(message, version, field)}: {reason}")
        self.message = message
        self.version = version
        self.field = field
        self.reason = reason


class UnsupportedVersion(KafkaException):
    """A version of a message that Kafka 3.9.1 does not define."""

    def __init__(self, message: str, version: int, first: int, last: int) -> None:
        super().__init__(f"{message} has versions {first} to {last}, not {version}")
        self.message = message
        self.version = version


def _place(message: str, version: int, field: str) -> str:
    return f"{message} version {version}" + (f", field {field}" if field else "")
