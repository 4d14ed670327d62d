"""The port to a network: the same stories in the simulator, with messages as objects and as bytes, and on TCP."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from conformance_network import (
    Ask,
    Confused,
    Mumble,
    NetworkHarness,
    OnNetwork,
    Told,
    answer,
    asks,
    refused,
)

from rebalance_lab.world.network import (
    CannotConnect,
    CannotListen,
    ConnectionClosed,
    ConnectionLost,
    FrameTooLarge,
    Limits,
    ProtocolViolated,
    RequestTimedOut,
    ServerConnection,
    TooManyRequests,
)


class TestRequests:
    def test_replies_come_to_their_requests_in_order(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            texts = ["one", "two", "three", "four", "five"]
            replies = [client.request(Ask(text)) for text in texts]
            assert client.in_flight == 5
            for text in texts:
                await answer(server, text)
            assert [await reply for reply in replies] == [Told(text.upper()) for text in texts]
            assert client.in_flight == 0

        on_network(story)

    def test_a_client_has_no_more_requests_in_hand_than_its_limit(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair(limits=Limits(in_flight=2))
            first, second = client.request(Ask("one")), client.request(Ask("two"))
            await refused(client.request(Ask("three")), TooManyRequests, "2 requests have no reply")
            await refused(client.send(Ask("three")), TooManyRequests)
            await answer(server, "one")
            await first
            third = client.request(Ask("three"))
            for text in ("two", "three"):
                await answer(server, text)
            assert [await second, await third] == [Told("TWO"), Told("THREE")]

        on_network(story)

    def test_a_server_reads_one_request_at_a_time(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            replies = [client.request(Ask(text)) for text in ("one", "two")]
            first = server.receive()
            assert await first == Ask("one")
            await server.reply(Told("1"))
            second = server.receive()
            assert await second == Ask("two")
            third = server.receive()
            assert server.receive() is third, "the same call goes on"
            await replies[0]
            await h.kernel.sleep(1000)
            assert not third.done
            assert client.in_flight == 1, "the second was given up by its server"

        on_network(story)

    def test_a_request_may_want_no_reply(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            await client.send(Ask("hear"))
            assert client.in_flight == 0
            reply = client.request(Ask("this"))
            assert await server.receive() == Ask("hear")
            await answer(server, "this")
            assert await reply == Told("THIS")

        on_network(story)

    def test_there_is_one_reply_to_a_request(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            with pytest.raises(RuntimeError, match="receive one first"):
                server.reply(Told("?"))
            await asks(client, server, "one")
            with pytest.raises(RuntimeError, match="receive one first"):
                server.reply(Told("?"))

        on_network(story)

    def test_large_messages(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            for _ in range(3):
                await asks(client, server, "x" * 3_000_000)

        on_network(story)

    def test_a_reply_that_does_not_come_ends_the_connection(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            late, other = client.request(Ask("one"), timeout_us=20_000), client.request(Ask("two"))
            assert await server.receive() == Ask("one")
            await refused(late, RequestTimedOut, "no reply within 20 ms; what became of the request is unknown")
            await refused(other, ConnectionLost, "unknown")
            assert (await client.ended).startswith("no reply")
            await refused(client.request(Ask("three")), ConnectionClosed)
            await ended(server)

        on_network(story)

    def test_a_connection_and_a_reply_in_time_stop_their_clocks(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            client = await h.connect(listener.address, timeout_us=500_000)
            server = await listener.accept()
            reply = client.request(Ask("one"), timeout_us=500_000)
            await answer(server, "one")
            assert await reply == Told("ONE")
            await h.kernel.sleep(600_000)
            assert not client.ended.done
            await asks(client, server, "two")

        on_network(story)


async def ended(server: ServerConnection[Ask, Told]) -> None:
    """What is left to read, and then the end."""
    while not server.ended.done:
        with suppress(ConnectionLost):
            await server.receive()


class TestLimits:
    def test_a_message_beyond_the_limit_is_not_sent(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            if not h.carries_bytes:
                return
            client, server = await h.pair(limits=Limits(frame_bytes=14))
            await refused(client.request(Ask("12345678901")), FrameTooLarge, "15 bytes; the limit is 14")
            await refused(client.send(Ask("12345678901")), FrameTooLarge)
            reply = client.request(Ask("1234567890"))
            assert await server.receive() == Ask("1234567890")
            await refused(server.reply(Told("12345678901")), FrameTooLarge)
            await server.reply(Told("ok"))
            assert await reply == Told("ok")

        on_network(story)

    def test_a_server_resets_a_connection_with_a_frame_beyond_its_limit(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            if not h.carries_bytes:
                return
            listener = await h.listen(limits=Limits(frame_bytes=14))
            client = await h.connect(listener.address)
            server = await listener.accept()
            reply = client.request(Ask("12345678901"))
            await refused(server.receive(), ProtocolViolated, "a frame of 15 bytes; the limit is 14")
            await refused(reply, ConnectionLost)
            other = await h.connect(listener.address)
            await asks(other, await listener.accept(), "lives")

        on_network(story)

    def test_connections_that_nobody_takes_are_closed_beyond_a_limit(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen(limits=Limits(waiting=1))
            first = await h.connect(listener.address)
            second = await h.connect(listener.address)
            await second.ended
            await asks(first, await listener.accept(), "one")

        on_network(story)


class TestViolations:
    def test_a_request_that_cannot_be_read_ends_its_connection_alone(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            if not h.carries_bytes:
                return
            listener = await h.listen()
            client = await h.connect(listener.address, codec=Mumble())
            server = await listener.accept()
            reply = client.request(Ask("one"))
            await refused(server.receive(), ProtocolViolated, "cannot be read: 1 bytes are no correlation id")
            await refused(reply, ConnectionLost)
            other = await h.connect(listener.address)
            await asks(other, await listener.accept(), "it lives on")

        on_network(story)

    @pytest.mark.parametrize(
        ("codec", "why"), [(Mumble(), "a reply that cannot be read"), (Confused(), "correlation id 1 where 0 comes")]
    )
    def test_a_reply_that_is_wrong_ends_the_connection(self, on_network: OnNetwork, codec: Any, why: str) -> None:
        async def story(h: NetworkHarness) -> None:
            if not h.carries_bytes:
                return
            listener = await h.listen(codec=codec)
            client = await h.connect(listener.address)
            reply = client.request(Ask("one"))
            server = await listener.accept()
            await server.receive()
            await server.reply(Told("?"))
            await refused(reply, ProtocolViolated, why)
            await ended(server)

        on_network(story)


class TestEnds:
    def test_what_a_client_sent_before_its_end_is_read(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            reply = client.request(Ask("one"))
            client.close()
            client.close()
            await refused(reply, ConnectionLost, "closed by its owner")
            assert await server.receive() == Ask("one")
            await refused(server.receive(), ConnectionLost, "closed the connection")
            await refused(server.receive(), ConnectionLost)

        on_network(story)

    def test_a_reply_before_the_servers_end_is_read(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            first, second = client.request(Ask("one")), client.request(Ask("two"))
            await answer(server, "one")
            server.close()
            server.close()
            assert await first == Told("ONE")
            await refused(second, ConnectionLost, "unknown")
            await client.ended
            await refused(client.request(Ask("three")), ConnectionClosed)
            await refused(server.receive(), ConnectionLost)

        on_network(story)

    def test_a_closed_listener_takes_no_connection_and_keeps_those_it_took(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            client = await h.connect(listener.address)
            server = await listener.accept()
            waiting = await h.connect(listener.address)
            taking = listener.accept()
            if not taking.done:  # the third comes later than its client believes
                await taking
            third = listener.accept()
            assert listener.accept() is third
            listener.close()
            listener.close()
            await refused(third, ConnectionClosed, "the listener was closed")
            await refused(h.connect(listener.address), CannotConnect)
            await asks(client, server, "one")
            assert not waiting.ended.done

        on_network(story)

    def test_nobody_listens(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            listener.close()
            await refused(h.connect(listener.address), CannotConnect, "nobody listens there")

        on_network(story)

    def test_a_port_is_used_once(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            again = h.networks["b"].listen(Mumble(), port=listener.address.port)
            await refused(again, CannotListen, "the port is in use")

        on_network(story)

    def test_the_end_of_a_process_ends_its_connections(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            client, other = await h.connect(listener.address), await h.connect(listener.address, "c")
            server, _ = await listener.accept(), await listener.accept()
            await asks(client, server, "one")
            reply = client.request(Ask("two"))
            h.kill("b")
            await refused(reply, ConnectionLost)
            await other.ended
            await refused(h.connect(listener.address), CannotConnect)

        on_network(story)

    def test_the_end_of_a_client_process_is_noticed(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            _, server = await h.pair()
            h.kill("a")
            await refused(server.receive(), ConnectionLost)

        on_network(story)
