"""The 0.8 consumer's exceptions, under the names and with the texts its users know."""

from __future__ import annotations


class IllegalArgumentException(ValueError):
    """A setting cannot be what it is."""


class NumberFormatException(IllegalArgumentException):
    """A number was expected."""


class InvalidConfigException(ValueError):
    """A setting's value is not allowed."""


class MessageStreamsExistException(RuntimeError):
    """Streams were created before: a consumer does it once."""

    def __init__(self) -> None:
        super().__init__("ZookeeperConsumerConnector can create message streams at most once")


class FilterStreamsExistException(RuntimeError):
    """Streams were created before, by filter or by name (in 0.8.2 a plain RuntimeException)."""

    def __init__(self) -> None:
        super().__init__("Each consumer connector can create message streams by filter at most once.")


class ConsumerRebalanceFailedException(RuntimeError):
    """Every attempt of a rebalance failed."""

    def __init__(self, consumer_id: str, retries: int) -> None:
        super().__init__(f"{consumer_id} can't rebalance after {retries} retries")


class UnknownRuleSet(ValueError):
    """No rule set has this name; the message lists those there are."""


class NotSupported(ValueError):
    """A setting of Kafka's that this consumer does not offer; the message says what does."""
