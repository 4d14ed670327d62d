"""What only the simulated network can show: processes that stand still, losses, and the same history from a seed."""

from __future__ import annotations

import pytest
from conformance_network import TEXT, Ask, NetworkHarness, SimulatedNetworkHarness, Told

from rebalance_lab.kernel import RandomStream
from rebalance_lab.world.network import Address, CannotConnect, ConnectionLost, NetworkError, ServerConnection
from rebalance_lab.world.simulated.network import carries_bytes
from rebalance_lab.world.simulated.settings import NetworkSettings

Trace = list[tuple[int, str]]


def traced(seed: int, *, through_bytes: bool, loss: float = 0.0) -> Trace:
    """When what happened: three clients of one server, with cuts drawn from the seed."""
    settings = NetworkSettings(loss=loss)
    harness = SimulatedNetworkHarness(seed, through_bytes=through_bytes, settings=settings)
    trace: Trace = []

    def note(what: str) -> None:
        trace.append((harness.kernel.now_us(), what))

    async def serve(h: NetworkHarness, address: list[Address]) -> None:
        listener = await h.listen()
        address.append(listener.address)
        async with h.kernel.scope("connections") as scope:
            while True:
                connection = await listener.accept()
                scope.spawn(answer(connection), connection.peer)

    async def answer(connection: ServerConnection[Ask, Told]) -> None:
        try:
            while True:
                request = await connection.receive()
                note(f"b: {request.text}")
                await connection.reply(Told(request.text.upper()))
        except NetworkError as error:
            note(f"b: {error}")

    async def client(h: NetworkHarness, host: str, address: Address) -> None:
        for count in range(3):
            try:
                connection = await h.connect(address, host)
                for number in range(10):
                    reply = await connection.request(Ask(f"{host}{count}{number}"), timeout_us=3_000_000)
                    note(f"{host}: {reply.text}")
                connection.close()
            except NetworkError as error:
                note(f"{host}: {error}")

    async def trouble(h: NetworkHarness) -> None:
        stream = RandomStream(seed, "trouble", "links")
        for _ in range(5):
            await h.kernel.sleep(stream.below(10_000))
            h.set_link("a", "b", silent=(stream.below(2) == 0, stream.below(2) == 0))
            await h.kernel.sleep(stream.below(500_000))
            h.set_link("a", "b")

    async def story(h: NetworkHarness) -> None:
        address: list[Address] = []
        async with h.kernel.scope("all") as scope:
            server = scope.spawn(serve(h, address), "server")
            await h.kernel.sleep(1000)
            clients = [scope.spawn(client(h, host, address[0]), host) for host in ("a", "c")]
            await trouble(h)
            for each in clients:
                await each
            server.cancel("the story ends")

    harness.run(story)
    return trace


@pytest.mark.parametrize("seed", range(10))
def test_objects_and_bytes_have_one_history(seed: int) -> None:
    trace = traced(seed, through_bytes=False)
    assert trace == traced(seed, through_bytes=True)
    assert any("A00" in what for _, what in trace)


def test_seeds_differ() -> None:
    assert traced(1, through_bytes=False) != traced(2, through_bytes=False)


def test_a_loss_ends_the_connection_of_both_and_a_request_is_never_skipped() -> None:
    losses = 0
    for seed in range(20):
        trace = traced(seed, through_bytes=True, loss=0.03)
        losses += sum("reset" in what for _, what in trace)
        for host in ("a", "c"):
            for count in range(3):
                told = [what[-1] for _, what in trace if what.startswith(f"{host}: {host.upper()}{count}")]
                assert told == [str(number) for number in range(len(told))]
    assert losses > 0


def test_bytes_pass_in_one_seed_of_ten() -> None:
    assert [seed for seed in range(31) if carries_bytes(seed)] == [0, 10, 20, 30]


def test_a_host_takes_connections_while_its_process_stands_still() -> None:
    harness = SimulatedNetworkHarness(1, through_bytes=True)

    async def story(h: NetworkHarness) -> None:
        listener = await h.listen()
        accepting = listener.accept()
        harness.processes["b"].pause()
        client = await h.connect(listener.address)
        reply = client.request(Ask("one"))
        await h.kernel.sleep(1_000_000)
        assert not accepting.done
        assert not client.ended.done
        harness.processes["b"].resume()
        server = await accepting
        assert await server.receive() == Ask("one")
        await server.reply(Told("ONE"))
        assert await reply == Told("ONE")

    harness.run(story)


def test_a_process_that_stood_still_reads_its_replies_before_its_deadlines() -> None:
    harness = SimulatedNetworkHarness(1, through_bytes=True)

    async def client(h: NetworkHarness, address: Address) -> Told:
        connection = await h.connect(address)
        return await connection.request(Ask("one"), timeout_us=50_000)

    async def story(h: NetworkHarness) -> None:
        listener = await h.listen()
        asking = h.kernel.start_root(client(h, listener.address), "client", process=harness.processes["a"])
        server = await listener.accept()
        await server.receive()
        harness.processes["a"].pause()
        await server.reply(Told("ONE"))
        await h.kernel.sleep(1_000_000)
        assert not asking.done
        harness.processes["a"].resume()
        assert await asking == Told("ONE")

    harness.run(story)


def test_a_process_killed_behind_a_cut_leaves_its_connection_half_open() -> None:
    harness = SimulatedNetworkHarness(1, through_bytes=True)

    async def story(h: NetworkHarness) -> None:
        _, server = await h.pair()
        h.set_link("a", "b", silent=(True, True))
        h.kill("a")
        request = server.receive()
        await h.kernel.sleep(3_600_000_000)
        assert not request.done
        h.set_link("a", "b")
        with pytest.raises(ConnectionLost):
            await request

    harness.simulation.run(story(harness))


def test_there_is_no_such_host() -> None:
    async def story(h: NetworkHarness) -> None:
        connecting = h.networks["a"].connect(Address("z", 1), TEXT, timeout_us=1)
        with pytest.raises(CannotConnect, match="there is no host z"):
            await connecting

    SimulatedNetworkHarness(1, through_bytes=False).run(story)


def test_each_address_that_is_listened_at_is_told() -> None:
    harness = SimulatedNetworkHarness(1, through_bytes=False)

    async def story(h: NetworkHarness) -> None:
        listener = await h.networks["b"].listen(TEXT, port=9092)
        assert harness.listening == [listener.address] == [Address("b", 9092)]

    harness.run(story)
