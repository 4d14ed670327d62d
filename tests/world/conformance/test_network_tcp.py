"""What only TCP can show: bytes of strangers, and a buffer that is full."""

from __future__ import annotations

import socket

import pytest
from conformance_network import TEXT, Ask, LiveNetworkHarness, NetworkHarness, Told
from hypothesis import given, settings
from hypothesis import strategies as st

from rebalance_lab.world.live.pipes import JOINED_BYTES, LENGTH_BYTES
from rebalance_lab.world.network import ConnectionLost, Limits, Listener

#: What a stranger may send: lengths that lie, frames that are cut short, and frames that are whole.
chunks = st.one_of(
    st.binary(max_size=20),
    st.integers(-(2**31), 2**31 - 1).map(lambda length: length.to_bytes(LENGTH_BYTES, "big", signed=True)),
    st.binary(max_size=20).map(lambda frame: len(frame).to_bytes(LENGTH_BYTES, "big") + frame),
)


def stranger(listener: Listener[Ask, Told], data: bytes) -> socket.socket:
    """A client that sends these bytes."""
    client = socket.create_connection((listener.address.host, listener.address.port))
    client.sendall(data)
    return client


@settings(max_examples=30, deadline=None, derandomize=True)
@given(sent=st.lists(st.lists(chunks, max_size=6).map(b"".join), max_size=5))
def test_bytes_of_strangers_end_their_connection_alone(sent: list[bytes]) -> None:
    async def story(h: NetworkHarness) -> None:
        listener = await h.listen(limits=Limits(frame_bytes=1000))
        for data in sent:
            stranger(listener, data).close()
            server = await listener.accept()
            while not server.ended.done:
                try:
                    await server.receive()
                    await server.reply(Told("heard"))
                except ConnectionLost:
                    continue
        client = await h.connect(listener.address)
        server = await listener.accept()
        reply = client.request(Ask("one"))
        assert await server.receive() == Ask("one")
        await server.reply(Told("ONE"))
        assert await reply == Told("ONE")

    LiveNetworkHarness().run(story)


def test_a_length_alone_takes_no_memory() -> None:
    async def story(h: NetworkHarness) -> None:
        listener = await h.listen()
        client = stranger(listener, (100 * 1024 * 1024).to_bytes(LENGTH_BYTES, "big") + b"x")
        server = await listener.accept()
        request = server.receive()
        client.close()
        with pytest.raises(ConnectionLost, match="closed the connection"):
            await request

    LiveNetworkHarness().run(story)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_frame_arrives_whole_however_it_was_written(more: int) -> None:
    async def story(h: NetworkHarness) -> None:
        client, server = await h.pair()
        text = "x" * (JOINED_BYTES - len(TEXT.encode_request(0, Ask(""))) + more)
        replies = [client.request(Ask(text)) for _ in range(3)]
        for reply in replies:
            assert await server.receive() == Ask(text)
            await server.reply(Told(text))
            assert await reply == Told(text)

    LiveNetworkHarness().run(story)


def test_a_client_that_sends_more_than_is_read_has_to_wait() -> None:
    async def story(h: NetworkHarness) -> None:
        client, server = await h.pair()
        text = "x" * 100_000
        count = 1
        while (room := client.send(Ask(text))).done:
            count += 1
            assert count < 1000, "100 MB that nobody has asked for are under way"
            await h.kernel.sleep(0)
        for _ in range(count):
            assert await server.receive() == Ask(text)
        await room

    LiveNetworkHarness().run(story)


def test_every_socket_is_closed_at_the_end() -> None:
    harness = LiveNetworkHarness()

    async def story(h: NetworkHarness) -> None:
        listener = await h.listen()
        await h.connect(listener.address)
        h.set_link("c", "b", silent=(True, False))
        h.connect(listener.address, "c")
        h.networks["a"].listen(TEXT)

    harness.run(story)  # a socket that is left open warns, and warnings are errors
