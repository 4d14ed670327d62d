"""`topics`: what members need to know of topics."""

from __future__ import annotations

import random
from typing import Annotated

import typer

from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption, ZooKeeperOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.kernel import RandomStream, TimedOut
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.trials.fixture import write_fixture
from rebalance_lab.world.live.connect_string import BadConnectString
from rebalance_lab.world.live.factory import LiveZooKeeperFactory
from rebalance_lab.world.ports import SessionEventKind, ZooKeeper

SESSION_TIMEOUT_MS = 10_000

#: A ZooKeeper that does not answer within this is not there.
LIMIT_US = 10_000_000


def topics(
    *,
    zookeeper: ZooKeeperOption,
    create: Annotated[str, typer.Option("--create", help="The topic to create.", metavar="TOPIC")],
    partitions: Annotated[int, typer.Option("--partitions", help="How many.", min=1)],
    fixture: Annotated[
        bool, typer.Option("--fixture", help="Write the znodes of brokers and topic; there are no brokers.")
    ] = False,
    brokers: Annotated[int, typer.Option("--brokers", help="Broker znodes, ids from 0.", min=0)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Create a topic. Asking again for the same changes nothing."""
    if not fixture:
        raise Failure("--create needs brokers, which are not built yet; --fixture writes the znodes without them")
    if not create or "/" in create:
        raise Failure(f"--create {create!r}: a topic's name has no slash, and is not empty")
    with spoken():
        try:
            created = _write(zookeeper, create, partitions, brokers)
        except BadConnectString as error:
            raise Failure(f"--zookeeper {error}") from error
        except TimedOut as error:
            raise Failure(f"no ZooKeeper answers at {zookeeper}: {error}") from error
    if as_json:
        print_json({"created": created})
    else:
        print("\n".join(f"created {path}" for path in created) or "nothing to do: all of it is there")


def _write(connect: str, topic: str, partitions: int, brokers: int) -> list[str]:
    with LiveKernel() as live:
        stream = RandomStream(random.randrange(2**32), "topics", "session")
        factory = LiveZooKeeperFactory(live.kernel, live.loop, stream)
        session = factory.open(connect, SESSION_TIMEOUT_MS)

        async def work() -> list[str]:
            async with live.kernel.timeout(LIMIT_US, f"writing to {connect}"):
                await _connected(session)
                created = await write_fixture(session, brokers=brokers, topics={topic: partitions})
                await session.close()
            return created

        try:
            return live.run(work())
        finally:
            factory.close()


async def _connected(session: ZooKeeper) -> None:
    while (await session.events.get()).kind is not SessionEventKind.CONNECTED:
        continue
