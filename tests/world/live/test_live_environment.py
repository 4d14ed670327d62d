"""What an actor of a live trial is given."""

from __future__ import annotations

import os
import socket
import time

import pytest

from rebalance_lab.history.events import Kind
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.calls import KafkaCodec
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.live.network import ADDRESS_VARIABLE
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.net.listening import address_of
from rebalance_lab.world.network import Address
from rebalance_lab.world.ports import SessionEventKind
from rebalance_lab.world.process.clocks import boot_id, identity


def test_sessions_are_recorded(embedded_zookeeper: EmbeddedZooKeeper) -> None:
    sink = MemorySink()
    with LiveKernel() as live:
        environment = live_environment("m1", live, sink, 7, host="web01", member_of=lambda: "g_web01-1-ab")

        async def story() -> int:
            session = environment.zookeeper.open(embedded_zookeeper.connect_string, 5000)
            async with live.kernel.timeout(20_000_000, "the test"):
                assert (await session.events.get()).kind is SessionEventKind.CONNECTED
                await session.exists("/")
            return session.session_id

        session_id = live.run(story())
    # The kernel is closed, the session was left open: its socket is gone (a warning about it
    # would be an error), and the history ends with what was known.
    assert [event.kind for event in sink.events] == [Kind.CONNECTED, Kind.INVOKED, Kind.OK]
    connected, invoked, ok = sink.events
    assert connected.session == f"{session_id:#x}"
    assert ok.cause == invoked.id
    assert {event.member for event in sink.events} == {"g_web01-1-ab"}
    assert {event.actor for event in sink.events} == {"m1"}
    assert environment.host == "web01"


def test_the_clock_is_the_hosts() -> None:
    with LiveKernel() as live:
        environment = live_environment("m1", live, MemorySink(), 7)
        assert environment.host == socket.gethostname()
        before_us, before_ms = time.monotonic_ns() // 1000, time.time_ns() // 1_000_000
        now_us, wall_ms = environment.clock.now_us(), environment.clock.wall_ms()
        assert before_us <= now_us <= time.monotonic_ns() // 1000
        assert before_ms <= wall_ms <= time.time_ns() // 1_000_000


def test_random_streams_are_the_actors() -> None:
    with LiveKernel() as live:
        one, same, other = (live_environment(actor, live, MemorySink(), 7) for actor in ("m1", "m1", "m2"))
        assert one.random("id").hex(8) == same.random("id").hex(8) != other.random("id").hex(8)


@pytest.mark.parametrize(
    ("address", "reached"),
    [
        (None, ["127.0.0.1"]),
        ("127.0.0.1", ["127.0.0.1"]),
        ("127.0.0.2", ["127.0.0.1", "127.0.0.2"]),
        ("192.0.2.1", ["127.0.0.1", "127.0.0.2"]),
    ],
)
def test_it_listens_on_loopback_unless_it_has_another_address(
    address: str | None, reached: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """192.0.2.1 (RFC 5737) is no address of this machine, like that of a container without its network."""
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    if address is not None:
        monkeypatch.setenv(ADDRESS_VARIABLE, address)
    sink = MemorySink()
    with LiveKernel() as live:
        environment = live_environment("m1", live, sink, 7)

        async def story() -> int:
            listener = await environment.network.listen(KafkaCodec())
            assert listener.address.host == (address or "127.0.0.1")
            return listener.address.port

        port = live.run(story())
        for host in ("127.0.0.1", "127.0.0.2"):
            with socket.socket() as client:
                assert (client.connect_ex((host, port)) == 0) == (host in reached)
    (event,) = sink.events
    assert address_of(event) == Address(address or "127.0.0.1", port)


def test_a_process_tells_who_it_is() -> None:
    told = identity()
    assert told["pid"] == os.getpid()
    assert told["boot_id"] == boot_id()
    assert str(told["time_namespace"]).startswith("time:[")
