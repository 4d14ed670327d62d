"""Settings: names, defaults and the texts of errors as in 0.8.2."""

from __future__ import annotations

import msgspec
import pytest

from zkconsumer.config import ConsumerConfig
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException, NumberFormatException

REQUIRED = {"zookeeper.connect": "localhost:2181", "group.id": "g1"}


def config(**settings: str) -> ConsumerConfig:
    """`config(group__id="g")` sets group.id: a double underscore is a dot."""
    return ConsumerConfig.from_properties(
        {**REQUIRED, **{key.replace("__", "."): value for key, value in settings.items()}}
    )


def test_defaults() -> None:
    assert config() == ConsumerConfig(
        group_id="g1",
        zookeeper_connect="localhost:2181",
        consumer_id=None,
        client_id="g1",
        zookeeper_session_timeout_ms=6000,
        zookeeper_connection_timeout_ms=6000,
        zookeeper_sync_time_ms=2000,
        rebalance_max_retries=4,
        rebalance_backoff_ms=2000,
        auto_commit_enable=True,
        auto_commit_interval_ms=60_000,
        auto_offset_reset="largest",
        consumer_timeout_ms=-1,
        queued_max_message_chunks=2,
        fetch_message_max_bytes=1_048_576,
        fetch_min_bytes=1,
        fetch_wait_max_ms=100,
        socket_timeout_ms=30_000,
        socket_receive_buffer_bytes=65_536,
        num_consumer_fetchers=1,
        refresh_leader_backoff_ms=200,
        partition_assignment_strategy="range",
        exclude_internal_topics=True,
        offsets_storage="zookeeper",
        dual_commit_enabled=False,
        offsets_channel_backoff_ms=1000,
        offsets_channel_socket_timeout_ms=10_000,
        offsets_commit_max_retries=5,
    )


def test_defaults_that_follow_other_settings() -> None:
    assert config(zookeeper__session__timeout__ms="400").zookeeper_connection_timeout_ms == 400
    assert config(zookeeper__sync__time__ms="300").rebalance_backoff_ms == 300
    assert config(client__id="c").client_id == "c"
    kafka = config(offsets__storage="KAFKA")
    assert (kafka.offsets_storage, kafka.dual_commit_enabled) == ("kafka", True)
    assert config(offsets__storage="kafka", dual__commit__enabled="false").dual_commit_enabled is False


REFUSED = [
    ({}, IllegalArgumentException, "requirement failed: Missing required property 'zookeeper.connect'"),
    (
        {"zookeeper.connect": "h:1"},
        IllegalArgumentException,
        "requirement failed: Missing required property 'group.id'",
    ),
    ({**REQUIRED, "rebalance.max.retries": "four"}, NumberFormatException, 'For input string: "four"'),
    ({**REQUIRED, "rebalance.backoff.ms": " 5"}, NumberFormatException, 'For input string: " 5"'),
    ({**REQUIRED, "fetch.min.bytes": "2147483648"}, NumberFormatException, 'For input string: "2147483648"'),
    ({**REQUIRED, "fetch.min.bytes": ""}, NumberFormatException, 'For input string: ""'),
    ({**REQUIRED, "fetch.min.bytes": "1_0"}, NumberFormatException, 'For input string: "1_0"'),
    ({**REQUIRED, "fetch.min.bytes": "𝟑"}, NumberFormatException, 'For input string: "𝟑"'),
    ({**REQUIRED, "fetch.min.bytes": "9" * 5000}, NumberFormatException, f'For input string: "{"9" * 5000}"'),
    (
        {**REQUIRED, "auto.commit.enable": "True"},
        IllegalArgumentException,
        "requirement failed: Unacceptable value for property 'auto.commit.enable', "
        "boolean values must be either 'true' or 'false'",
    ),
    (
        {**REQUIRED, "group.id": "a/b"},
        InvalidConfigException,
        "client.id a/b is illegal, contains a character other than ASCII alphanumerics, '.', '_' and '-'",
    ),
    (
        {**REQUIRED, "group.id": "a/b", "client.id": "c"},
        InvalidConfigException,
        "group.id a/b is illegal, contains a character other than ASCII alphanumerics, '.', '_' and '-'",
    ),
    (
        {**REQUIRED, "group.id": "g\n"},
        InvalidConfigException,
        "client.id g\n is illegal, contains a character other than ASCII alphanumerics, '.', '_' and '-'",
    ),
    (
        {**REQUIRED, "auto.offset.reset": "earliest", "offsets.storage": "disk"},
        InvalidConfigException,
        "Wrong value earliest of auto.offset.reset in ConsumerConfig; Valid values are smallest and largest",
    ),
    (
        {**REQUIRED, "offsets.storage": "Disk"},
        InvalidConfigException,
        "Wrong value disk of offsets.storage in consumer config; Valid values are 'zookeeper' and 'kafka'",
    ),
    (
        {**REQUIRED, "socket.timeout.ms": "-1"},
        IllegalArgumentException,
        "requirement failed: socket.timeout.ms should always be at least fetch.wait.max.ms"
        " to prevent unnecessary socket timeouts",
    ),
]


@pytest.mark.parametrize(("settings", "error", "text"), REFUSED)
def test_wrong_settings_are_refused(settings: dict[str, str], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        ConsumerConfig.from_properties(settings)
    assert type(raised.value) is error
    assert str(raised.value) == text


def test_the_check_of_the_socket_timeout_is_dead_as_in_kafka() -> None:
    assert config(socket__timeout__ms="10", fetch__wait__max__ms="500").socket_timeout_ms == 10


def test_an_empty_group_passes() -> None:
    assert config(group__id="").group_id == ""


@pytest.mark.parametrize(("text", "number"), [("+7", 7), ("-0", 0), ("٣", 3), ("０１", 1)])
def test_numbers_are_read_as_java_reads_them(text: str, number: int) -> None:
    assert config(consumer__timeout__ms=text).consumer_timeout_ms == number


def test_unknown_settings_only_warn() -> None:
    assert config(zk__connect="x", external__tool="y", group__name="z").warnings == (
        "Property group.name is not valid",
        "Property zk.connect is not valid",
    )


def test_the_strategy_is_not_checked() -> None:
    odd = config(partition__assignment__strategy="roundrobbin")
    assert (odd.partition_assignment_strategy, odd.strategy_given) == ("roundrobbin", True)
    assert config().strategy_given is False


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"zookeeper.session.timeout.ms": "400", "rebalance.backoff.ms": "7", "auto.commit.enable": "false"},
        {"zookeeper.sync.time.ms": "300", "consumer.id": "c", "client.id": "x", "check.owner.before.delete": "true"},
        {"partition.assignment.strategy": "roundrobin", "consumer.timeout.ms": "5"},
    ],
)
def test_what_is_not_at_its_default_is_written_as_it_was_read(settings: dict[str, str]) -> None:
    assert ConsumerConfig.from_properties({**REQUIRED, **settings}).properties() == {**REQUIRED, **settings}


def test_settings_without_a_group_are_accepted_with_the_default_group_only() -> None:
    typed = ConsumerConfig(zookeeper_connect="h:1", group_id="", group_given=False)
    assert typed.properties() == {"zookeeper.connect": "h:1"}
    assert typed.accepted("default").group_id == "default"
    with pytest.raises(IllegalArgumentException, match=r"Missing required property 'group\.id'"):
        typed.accepted(None)


def test_settings_keep_their_types_in_a_nodes_start_data() -> None:
    typed = config(rebalance__backoff__ms="7", undo__failed__claims="true", auto__commit__enable="false")
    assert msgspec.json.decode(msgspec.json.encode(typed), type=ConsumerConfig) == typed
