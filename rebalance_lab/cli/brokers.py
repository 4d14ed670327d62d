"""What commands that talk to brokers share: the option, the connection, and how errors are reported."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

import typer

from rebalance_lab.cli.failures import Failure
from rebalance_lab.client.cluster import REQUEST_TIMEOUT_MS, ClusterClient, NoBroker, NotServed, RefusedByBroker
from rebalance_lab.history.events import Event
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.network import Address, NetworkError

T = TypeVar("T")

#: What the fields of Kafka's requests can hold.
MOST_PARTITIONS, MOST_REPLICAS = 2**31 - 1, 2**15 - 1

CLIENT_ID = "rebalance-lab"

BootstrapOption = Annotated[
    str, typer.Option("--bootstrap", help="Addresses of brokers, by commas.", metavar="HOST:PORT[,…]")
]

TopicOption = Annotated[str, typer.Option("--topic", help="The topic.", metavar="TOPIC")]
TimeoutOption = Annotated[
    int,
    typer.Option(
        "--timeout-ms", help="How long brokers may be away or not answer, retries included.", min=1, max=86_400_000
    ),
]

#: How long a partition may be without a leader, or its leader not answer.
TIMEOUT_MS = 30_000

_ERRORS = (NoBroker, NotServed, RefusedByBroker, NetworkError)


class Unrecorded:
    """Takes the events of what is not part of a trial."""

    def write(self, _event: Event) -> None:
        pass


def addresses(text: str) -> list[Address]:
    """Raises Failure."""
    found = []
    for each in text.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise Failure(f"--bootstrap {text}: {each!r} is not HOST:PORT")
        found.append(Address(host, int(port)))
    return found


def with_cluster(
    bootstrap: str,
    work: Callable[[ClusterClient, LiveKernel], Coroutine[Any, Any, T]],
    *,
    timeout_ms: int = REQUEST_TIMEOUT_MS,
) -> T:
    """The result of `work` with a client. `timeout_ms`: how long a broker may take to answer, at most
    REQUEST_TIMEOUT_MS. Raises Failure for what the brokers refuse, and if none answers."""
    known = addresses(bootstrap)
    limit_ms = min(timeout_ms, REQUEST_TIMEOUT_MS)
    with LiveKernel() as live:
        try:
            environment = live_environment(CLIENT_ID, live, Unrecorded(), 0)
            client = ClusterClient(
                environment.tasks, environment.network, known, CLIENT_ID, request_timeout_ms=limit_ms
            )
            return live.run(work(client, live))
        except _ERRORS as error:
            raise Failure(str(error)) from error
