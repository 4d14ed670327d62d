"""Links of the port to a network, cut and slowed: the same stories in the simulator and on TCP."""

from __future__ import annotations

from contextlib import suppress

import pytest
from conformance_network import Ask, NetworkHarness, OnNetwork, Told, answer, asks, refused

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.network import CannotConnect, Connection, ConnectionLost, ServerConnection


class TestLinks:
    def test_what_was_lost_both_ways_comes_after_the_cut(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            await asks(client, server, "before")
            h.set_link("a", "b", silent=(True, True))
            reply = client.request(Ask("during"))
            request = server.receive()
            await h.kernel.sleep(50_000)
            assert not request.done
            assert h.set_link("a", "b")
            assert await request == Ask("during")
            await server.reply(Told("after"))
            assert await reply == Told("after")
            assert not h.set_link("a", "b")

        on_network(story)

    @pytest.mark.parametrize("to_server", [True, False])
    def test_a_cut_one_way_leaves_the_other(self, on_network: OnNetwork, to_server: bool) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            first = client.request(Ask("one"))
            assert await server.receive() == Ask("one")
            h.set_link("a", "b", silent=(to_server, not to_server))
            second = client.request(Ask("two"))
            await server.reply(Told("1"))
            request = server.receive()
            if to_server:
                assert await first == Told("1")
            else:
                assert await request == Ask("two")
            await h.kernel.sleep(50_000)
            assert (request.done, first.done) == (not to_server, to_server)
            assert h.set_link("a", "b")
            assert await request == Ask("two")
            await server.reply(Told("2"))
            assert [await first, await second] == [Told("1"), Told("2")]

        on_network(story)

    def test_who_connects_makes_no_difference(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            h.set_link("b", "a", silent=(False, True))
            reply = client.request(Ask("one"))
            request = server.receive()
            await h.kernel.sleep(50_000)
            assert not request.done
            assert h.set_link("b", "a")
            assert await request == Ask("one")
            await server.reply(Told("ONE"))
            assert await reply == Told("ONE")

        on_network(story)

    def test_other_links_are_left_alone(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            await h.connect(listener.address)
            other = await h.connect(listener.address, "c")
            _, server = await listener.accept(), await listener.accept()
            h.set_link("a", "b", silent=(True, True))
            await asks(other, server, "one")
            assert not h.set_link("a", "b"), "nothing was sent there"

        on_network(story)

    def test_new_connections_hang_while_either_way_is_cut(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            for silent in ((True, False), (False, True)):
                h.set_link("a", "b", silent=silent)
                await refused(h.connect(listener.address, timeout_us=20_000), CannotConnect, "no answer within 20 ms")
            hanging = h.connect(listener.address)
            assert h.set_link("a", "b")
            client = await hanging
            await asks(client, await listener.accept(), "one")

        on_network(story)

    def test_a_connection_is_half_open_while_its_end_is_lost(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            await asks(client, server, "before")
            h.set_link("a", "b", silent=(True, True))
            client.close()
            request = server.receive()
            await h.kernel.sleep(50_000)
            assert not request.done
            h.set_link("a", "b")
            await refused(request, ConnectionLost)

        on_network(story)

    def test_a_client_does_not_learn_of_an_end_that_is_lost(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            await asks(client, server, "before")
            h.set_link("a", "b", silent=(False, True))
            server.close()
            await h.kernel.sleep(50_000)
            assert not client.ended.done
            h.set_link("a", "b")
            await client.ended

        on_network(story)

    def test_a_client_learns_of_an_end_by_the_way_that_is_open(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            await asks(client, server, "before")
            h.set_link("a", "b", silent=(True, False))
            server.close()
            await client.ended
            h.set_link("a", "b")

        on_network(story)

    def test_a_slow_link_delays_what_it_carries_and_keeps_its_order(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            client, server = await h.pair()
            h.set_link("a", "b", slow_us=(30_000, 0))
            began_us = h.kernel.now_us()
            replies = [client.request(Ask(text)) for text in ("one", "two")]
            assert await server.receive() == Ask("one")
            assert h.kernel.now_us() - began_us >= 29_000
            await server.reply(Told("ONE"))
            assert h.set_link("a", "b")
            last = client.request(Ask("three"))
            for text in ("two", "three"):
                await answer(server, text)
            assert [await each for each in (*replies, last)] == [Told("ONE"), Told("TWO"), Told("THREE")]

        on_network(story)

    def test_a_new_connection_is_as_slow_as_its_link_and_nothing_overtakes(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            h.set_link("a", "b", slow_us=(30_000, 0))
            client = await h.connect(listener.address)
            began_us = h.kernel.now_us()
            replies = [client.request(Ask("one"))]
            h.set_link("a", "b")
            replies.append(client.request(Ask("two")))
            server = await listener.accept()
            await answer(server, "one")
            assert h.kernel.now_us() - began_us >= 29_000
            await answer(server, "two")
            assert [await each for each in replies] == [Told("ONE"), Told("TWO")]

        on_network(story)

    def test_a_connection_over_a_slow_link_comes_about_after_both_ways(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            h.set_link("a", "b", slow_us=(30_000, 20_000))
            began_us = h.kernel.now_us()
            client = await h.connect(listener.address)
            assert h.kernel.now_us() - began_us >= 49_000
            reply = client.request(Ask("one"))
            await answer(await listener.accept(), "one")
            assert await reply == Told("ONE")
            assert h.kernel.now_us() - began_us >= 98_000

        on_network(story)

    def test_an_attempt_over_a_slow_link_can_be_given_up(self, on_network: OnNetwork) -> None:
        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            h.set_link("a", "b", slow_us=(0, 50_000))
            with pytest.raises(CannotConnect):
                await h.connect(listener.address, timeout_us=20_000)
            await h.kernel.sleep(50_000)
            h.set_link("a", "b")
            client = await h.connect(listener.address)
            reply = client.request(Ask("one"))
            while not reply.done:  # the attempt that was given up may have come about at the server
                with suppress(ConnectionLost):
                    await answer(await listener.accept(), "one")
                    assert await reply == Told("ONE")

        on_network(story)

    @pytest.mark.parametrize("seed", range(2))
    def test_random_cuts_lose_and_swap_nothing(self, on_network: OnNetwork, seed: int) -> None:
        """Two clients of one server; the link of one is cut and slowed at random."""
        count = 30

        async def serve(server: ServerConnection[Ask, Told], seen: list[str]) -> None:
            with suppress(ConnectionLost):
                while True:
                    request = await server.receive()
                    seen.append(request.text)
                    await server.reply(Told(request.text.upper()))

        async def ask(h: NetworkHarness, client: Connection[Ask, Told], host: str) -> None:
            for number in range(0, count, 3):
                replies = [client.request(Ask(f"{host}{each}")) for each in range(number, number + 3)]
                assert [(await reply).text for reply in replies] == [f"{host.upper()}{number + n}" for n in range(3)]
                await h.kernel.sleep(5_000)
            client.close()

        async def trouble(h: NetworkHarness) -> None:
            stream = RandomStream(seed, "trouble", "links")
            for _ in range(4):
                await h.kernel.sleep(stream.below(20_000))
                silent = (stream.below(2) == 0, stream.below(2) == 0)
                h.set_link("a", "b", silent=silent, slow_us=(stream.below(20_000), stream.below(20_000)))
                await h.kernel.sleep(stream.below(100_000))
                h.set_link("a", "b")

        async def story(h: NetworkHarness) -> None:
            listener = await h.listen()
            seen: dict[str, list[str]] = {"a": [], "c": []}
            async with h.kernel.scope("all") as scope:
                for host, texts in seen.items():
                    client = await h.connect(listener.address, host)
                    scope.spawn(serve(await listener.accept(), texts), f"server of {host}")
                    scope.spawn(ask(h, client, host), host)
                scope.spawn(trouble(h), "trouble")
            assert seen == {host: [f"{host}{number}" for number in range(count)] for host in seen}

        on_network(story)
