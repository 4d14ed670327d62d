"""Subscriptions: the union, what it registers, what it refuses."""

from __future__ import annotations

import pytest

from rebalance_lab.wire.registration import Registration
from zkconsumer.errors import FilterStreamsExistException, MessageStreamsExistException
from zkconsumer.subscription import (
    BlackList,
    Static,
    Subscription,
    WhiteList,
    exists_already,
    registration_of,
    subscription_of,
)


@pytest.mark.parametrize(
    ("given", "registration"),
    [
        (Static({"t": 2, "a": 1}), Registration((("t", 2), ("a", 1)), "static", 5)),
        (Static({}), Registration((), "static", 5)),
        (WhiteList(" a, b "), Registration((("a|b", 1),), "white_list", 5)),
        (BlackList("'x.*'", 3), Registration((("x.*", 3),), "black_list", 5)),
    ],
)
def test_what_is_registered(given: Subscription, registration: Registration) -> None:
    assert registration_of(given, 5) == registration


def test_a_mapping_is_static() -> None:
    assert subscription_of({"t": 1}) == Static({"t": 1})
    assert subscription_of(WhiteList("t")) == WhiteList("t", streams=1)


def test_nothing_at_all_is_refused_as_in_kafka() -> None:
    with pytest.raises(RuntimeError, match=r"^topicCountMap is null$"):
        subscription_of(None)


def test_the_two_creates_refuse_a_second_one_in_their_own_words() -> None:
    assert isinstance(exists_already(Static({})), MessageStreamsExistException)
    assert isinstance(exists_already(BlackList("t")), FilterStreamsExistException)
