"""What can be set about the simulated ZooKeeper and the network to it."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.history.planted import PlantedBug

#: The simulated server's wall clock at virtual time 0, in epoch ms: 2015-10-02, the day of Kafka 0.8.2.2.
SIMULATED_EPOCH_MS = 1_443_744_000_000

#: What a connect string may call the one server of a simulated world, beside its name.
SIMULATED_HOST = "simulated"

#: What protocol code passes to `open` in a simulated world of one server.
SIMULATED_CONNECT = f"{SIMULATED_HOST}:2181"


class ServerBug(PlantedBug):
    """The planted bugs of the simulated server."""

    #: A create of an owner znode that exists succeeds, and logs no DELETE before it.
    TWO_OWNERS = "two-owners", "simulated server: accepts a second owner znode over the first"
    OLD_LISTS = "old-lists", "simulated server: answers with the list of members that the session had read before"


def wall_ms(now_us: int) -> int:
    """The simulated wall clock, in epoch ms, at a virtual time in microseconds."""
    return SIMULATED_EPOCH_MS + now_us // 1000


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """As in zoo.cfg: the tick, and the session timeouts a client may have, in ticks.

    The rest concerns ensembles (and the start of a single server). Each pair is (least, most),
    both included, and drawn from the seed:

    - `election_ms`: how long an election takes, and a server's start.
    - `replication_us`: how long a message between two servers takes, one way. A follower has
      applied a write so much later than the leader.
    - `sync_limit_ticks`: how long a server that says nothing is taken for one that works.
    """

    tick_ms: int = 500
    session_min_ticks: int = 2
    session_max_ticks: int = 20
    election_ms: tuple[int, int] = (200, 1000)
    replication_us: tuple[int, int] = (100, 900)
    sync_limit_ticks: int = 5

    def __post_init__(self) -> None:
        if self.tick_ms <= 0 or not 0 < self.session_min_ticks <= self.session_max_ticks:
            raise ValueError(f"{self}: the tick must be positive, and the bounds in order")
        if self.sync_limit_ticks <= 0:
            raise ValueError(f"sync_limit_ticks {self.sync_limit_ticks}: give at least 1")
        for name, (low, high) in (("election_ms", self.election_ms), ("replication_us", self.replication_us)):
            if not 0 <= low <= high:
                raise ValueError(f"{name} {(low, high)}: give (least, most) with 0 <= least <= most")

    def negotiate(self, asked_ms: int) -> int:
        """The session timeout the server grants to a client that asks for `asked_ms`."""
        return min(max(asked_ms, self.session_min_ticks * self.tick_ms), self.session_max_ticks * self.tick_ms)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """`latency_us`: the least and the most that one message takes, one way, both included; each direction of a
    connection keeps its order. `loss`: the chance that a message is lost, which resets its connection and loses all
    messages in flight, as TCP reports loss in no other way."""

    latency_us: tuple[int, int] = (100, 900)
    loss: float = 0.0

    def __post_init__(self) -> None:
        low, high = self.latency_us
        if not 0 <= low <= high:
            raise ValueError(f"latency_us {self.latency_us}: give (least, most) with 0 <= least <= most")
        if not 0.0 <= self.loss < 1.0:
            raise ValueError(f"loss {self.loss}: give a chance in [0, 1)")
