"""Payloads byte for byte as 0.8.2 writes them, and readers as forgiving as its."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.json_text import encode, parse
from rebalance_lab.wire.payloads import Broker, broker_payload, read_broker, read_partitions, topic_payload
from rebalance_lab.wire.registration import Registration, read_registration, registration_payload

topics = st.text(alphabet="abcXYZ019._-", min_size=1, max_size=12)
streams = st.dictionaries(topics, st.integers(1, 2**31 - 1), max_size=6)


def test_a_registration_as_written() -> None:
    registration = Registration((("orders", 2), ("audit", 1)), timestamp_ms=1416581234567)
    assert registration_payload(registration) == (
        b'{"version":1,"subscription":{"orders":2,"audit":1},"pattern":"static","timestamp":"1416581234567"}'
    )


def test_an_empty_registration_as_written() -> None:
    assert registration_payload(Registration((), timestamp_ms=5)) == (
        b'{"version":1,"subscription":{},"pattern":"static","timestamp":"5"}'
    )


@pytest.mark.parametrize(
    ("pattern", "raw", "written"),
    [
        ("white_list", "orders.*", '{"orders.*":4}'),
        ("black_list", "test\\..*", '{"test\\\\..*":4}'),
        ("white_list", " 'a, b/c' ", '{"a|b\\/c":4}'),
        ("static", 'a"b', '{"a"b":4}'),  # topics are not escaped
    ],
)
def test_a_subscription_as_written(pattern: str, raw: str, written: str) -> None:
    registration = Registration(((raw, 4),), pattern, 5)
    assert registration_payload(registration).decode() == (
        f'{{"version":1,"subscription":{written},"pattern":"{pattern}","timestamp":"5"}}'
    )


def test_a_wildcard_comes_back() -> None:
    registration = Registration((('a|b/"c"|[^d]\\.x', 2),), "white_list", 5)
    assert read_registration(registration_payload(registration)) == registration


def test_a_registration_needs_a_timestamp() -> None:
    with pytest.raises(ValueError, match="cannot write a registration without a timestamp"):
        registration_payload(Registration((("t", 1),)))


def test_a_registration_of_0_8_0_is_read() -> None:
    text = b'{ "pattern":"static", "subscription":{ "orders": 2 }, "timestamp":"1416581234567", "version":1 }'
    assert read_registration(text) == Registration((("orders", 2),), "static", 1416581234567)


@pytest.mark.parametrize(
    ("text", "timestamp_ms"),
    [
        (b'{"subscription":{"t":1},"pattern":"static"}', None),
        (b'{"pattern":"static","subscription":{"t":1},"timestamp":77}', None),  # a number is nobody's timestamp
        (b'{"timestamp":"77","pattern":"static","subscription":{"t":1},"version":9}', 77),
    ],
)
def test_readers_do_not_need_version_and_timestamp(text: bytes, timestamp_ms: int | None) -> None:
    assert read_registration(text) == Registration((("t", 1),), "static", timestamp_ms)


@pytest.mark.parametrize(
    "text",
    [
        '{"version":1,"subscription":{"t":1}}',
        '{"version":1,"pattern":"static"}',
        '{"pattern":"static","subscription":{"t":"1"}}',
        '{"pattern":"static","subscription":{"t":true}}',
        '{"pattern":null,"subscription":{}}',
        "[]",
        "",
        '{ "orders": 2,"audit": 1 }',  # 0.7
        "*4*regex",  # 0.7, white list
    ],
)
def test_what_is_no_registration_is_refused_with_kafkas_text(text: str) -> None:
    with pytest.raises(KafkaException) as raised:
        read_registration(text.encode())
    assert str(raised.value) == f"error constructing TopicCount : {text}"


def test_numbers_beyond_32_bits_are_refused() -> None:
    text = '{"pattern":"static","subscription":{"t":2147483648}}'
    with pytest.raises(KafkaException) as raised:
        read_registration(text.encode())
    assert str(raised.value) == f"Can't parse json string: {text}"


@given(streams, st.integers(0, 2**53))
def test_a_registration_comes_back(subscription: dict[str, int], timestamp_ms: int) -> None:
    registration = Registration(tuple(subscription.items()), timestamp_ms=timestamp_ms)
    assert read_registration(registration_payload(registration)) == registration
    assert registration.streams() == subscription


@given(streams, st.randoms(use_true_random=False))
def test_registrations_are_read_in_any_order(subscription: dict[str, int], random: object) -> None:
    written = json.loads(registration_payload(Registration(tuple(subscription.items()), timestamp_ms=1)))
    fields = list(written.items())
    random.shuffle(fields)  # type: ignore[attr-defined]
    assert read_registration(json.dumps(dict(fields), indent=1).encode()).streams() == subscription


EXISTING = ("abc", "abd", "xyz", "__consumer_offsets")


@pytest.mark.parametrize(
    ("registration", "found"),
    [
        (Registration((("ab.*", 4),), "white_list"), {"abc": 4, "abd": 4}),
        (Registration((("ab.*", 1),), "black_list"), {"xyz": 1}),
        (Registration(((".*", 1),), "white_list"), {"abc": 1, "abd": 1, "xyz": 1}),
        (Registration((('"abc, x y z"', 1),), "white_list"), {"abc": 1, "xyz": 1}),
        (Registration((("ab", 1),), "white_list"), {}),
        (Registration((), "white_list"), {}),
        (Registration((("gone", 1),), "odd"), {"gone": 1}),  # an unknown pattern is static
    ],
)
def test_filters_of_others_are_matched_against_whole_names(registration: Registration, found: dict[str, int]) -> None:
    assert registration.streams(EXISTING) == found


def test_internal_topics_are_there_for_those_who_ask() -> None:
    registration = Registration((("__.*", 1),), "white_list")
    assert registration.streams(EXISTING, exclude_internal=False) == {"__consumer_offsets": 1}
    assert registration.streams(EXISTING) == {}


@pytest.mark.parametrize("text", ["(a", "a{99999999999}"])
def test_a_bad_filter_is_refused_with_kafkas_text(text: str) -> None:
    with pytest.raises(KafkaException) as caught:
        Registration(((text, 1),), "white_list").streams(EXISTING)
    assert str(caught.value) == f"{text} is an invalid regex."


def test_a_broker_as_written() -> None:
    assert broker_payload("h1", 9092, timestamp_ms=1416581230000) == (
        b'{"jmx_port":-1,"timestamp":"1416581230000","host":"h1","version":1,"port":9092}'
    )


@given(st.integers(0, 2**31 - 1), topics, st.integers(0, 65535))
def test_a_broker_comes_back(broker_id: int, host: str, port: int) -> None:
    assert read_broker(broker_id, broker_payload(host, port, timestamp_ms=0)) == Broker(broker_id, host, port)


@pytest.mark.parametrize("text", ["", "{}", '{"host":"h"}', '{"host":"h","port":"9092"}', '{"host":1,"port":1}', "7"])
def test_what_is_no_broker_is_refused_with_kafkas_text(text: str) -> None:
    with pytest.raises(KafkaException) as raised:
        read_broker(0, text.encode())
    assert str(raised.value) == f"Failed to parse the broker info from zookeeper: {text}"


def test_a_topic_as_written() -> None:
    assert topic_payload({1: [2, 1], 0: [1, 2]}) == b'{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}'


def test_partitions_are_sorted_as_numbers() -> None:
    text = b'{"version":1,"partitions":{"10":[1],"2":[1],"0":[1]}}'
    assert read_partitions("t", text) == (0, 2, 10)


@pytest.mark.parametrize("text", [b"", b"{}", b"no json", b'{"version":1}', b"[1]"])
def test_a_topic_without_partitions_is_no_error(text: bytes) -> None:
    assert read_partitions("t", text) == ()


@pytest.mark.parametrize("text", [b'{"partitions":{"x":[1]}}', b'{"partitions":[1]}'])
def test_partitions_that_are_no_numbers_are(text: bytes) -> None:
    with pytest.raises(KafkaException, match="topic t has partitions that are not numbers"):
        read_partitions("t", text)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 9), max_size=3), max_size=20))
def test_a_topic_comes_back(replicas: dict[int, list[int]]) -> None:
    assert read_partitions("t", topic_payload(replicas)) == tuple(sorted(replicas))


def test_strings_are_not_escaped_as_in_kafka() -> None:
    assert encode({"a": 'q"q', "b": [True, 1], "c": {}}) == '{"a":"q"q","b":[true,1],"c":{}}'


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(TypeError, match=r"knows no float: 1\.5"):
        encode(1.5)


@pytest.mark.parametrize("text", ["1.5", "2147483648", "NaN", "[" * 100_000])
def test_numbers_are_32_bit_ints(text: str) -> None:
    with pytest.raises(KafkaException, match="Can't parse json string: "):
        parse(text)
