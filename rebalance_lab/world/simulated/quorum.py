"""Which servers of a simulated ensemble run, and which of them leads.

A server leads as long as a majority follows it. Without a majority no write is decided. The others notice at once that
a server died, because its connections are reset. They notice only after the sync limit that it is paused. An election
takes a seeded time. Among the servers that take part, the one with the longest log wins; if several logs are equally
long, the one with the highest number (FastLeaderElection).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.simulated.server import Server, ServerState
from rebalance_lab.world.simulated.settings import ServerSettings

if TYPE_CHECKING:
    from rebalance_lab.world.simulated.ensemble import Ensemble


class NoSuchServer(ValueError):
    """A fault was aimed at a server the ensemble does not have, or not in that state."""


class Quorum:
    """`leader`: None during an election, and without a majority. `decides`: whether writes can be committed now, which
    is when the leader and a majority that follows it run."""

    def __init__(
        self,
        kernel: Kernel,
        settings: ServerSettings,
        random: RandomStream,
        servers: dict[str, Server],
        ensemble: Ensemble,
    ) -> None:
        self.servers = servers
        self.leader: Server | None = max(servers.values(), key=lambda each: each.number)
        self.decides = True
        self._now_us = kernel.now_us
        self._call_at = kernel.driver.call_at
        self._least_us, self._most_us = (1000 * each for each in settings.election_ms)
        self._sync_limit_us = settings.sync_limit_ticks * settings.tick_ms * 1000
        self._random = random
        self._ensemble = ensemble
        self._election: Any = None
        self._starting: dict[str, None] = {}
        #: The leader is among them.
        self._followers: dict[str, None] = dict.fromkeys(servers)
        #: How many records each server had logged when it ceased to follow. A follower has logged all that was
        #: committed, so each majority has a server with all of it.
        self._logged: dict[str, int] = dict.fromkeys(servers, 0)

    @property
    def majority(self) -> int:
        return len(self.servers) // 2 + 1

    def follows(self, server: Server) -> bool:
        """Whether the server belongs to the leader's term, as the leader itself does."""
        return server.name in self._followers

    # -- faults -----------------------------------------------------------------------------

    def kill(self, server: Server) -> None:
        """Raises NoSuchServer when it is down already."""
        if server.state is ServerState.DOWN:
            raise NoSuchServer(f"server {server.name} is down already")
        if not server.paused:
            self._note(server)
        server.hold(paused=False)
        server.drop_clients(reset=True)
        server.change(ServerState.DOWN)
        self._starting.pop(server.name, None)
        self._lost(server)

    def start(self, server: Server) -> None:
        """Raises NoSuchServer unless it is down."""
        if server.state is not ServerState.DOWN:
            raise NoSuchServer(f"server {server.name} is {server.state.value}; only one that is down can be started")
        server.change(ServerState.LOOKING)
        self._starting[server.name] = None
        self._call_at(self._now_us() + self._draw_us(), partial(self._started, server, server.term))

    def pause(self, server: Server) -> None:
        """Raises NoSuchServer unless it runs."""
        if server.state is ServerState.DOWN or server.paused:
            raise NoSuchServer(f"server {server.name} is {'paused' if server.paused else 'down'}; it cannot be paused")
        self._note(server)
        server.hold(paused=True)
        self._settle()
        if len(self.servers) > 1 and self.follows(server):
            self._call_at(self._now_us() + self._sync_limit_us, partial(self._missed, server, server.term))

    def resume(self, server: Server) -> None:
        """Raises NoSuchServer unless it is paused."""
        if not server.paused:
            raise NoSuchServer(f"server {server.name} is not paused")
        server.hold(paused=False)
        self._settle()
        if not self.follows(server):
            self._look(server)
            self._find(server)
            return
        mail, server.mail = server.mail, []
        for call in mail:
            call()
        self._ensemble.goes_on()
        if server is self.leader:
            for each in self.servers.values():
                self._find(each)

    # -- losing and finding a leader --------------------------------------------------------

    def _note(self, server: Server) -> None:
        """Keep how much the server has logged until now. A follower acknowledges all that the leader proposes."""
        if self.leader is not None and self.follows(server):
            self._logged[server.name] = self.leader.applied

    def _missed(self, server: Server, term: int) -> None:
        """The sync limit of a server that was paused is over."""
        if server.paused and server.term == term and self.follows(server):
            self._lost(server)

    def _lost(self, server: Server) -> None:
        """The others go on without a server. It learns of that only when it runs again."""
        self._followers.pop(server.name, None)
        if server is self.leader or (self.leader is not None and len(self._followers) < self.majority):
            self._leaderless()
        self._settle()

    def _leaderless(self) -> None:
        for name in self._followers:
            if not self.servers[name].paused:
                self._note(self.servers[name])
        followers, self._followers, self.leader = self._followers, {}, None
        for name in followers:
            if not self.servers[name].paused:  # a paused one finds out when it is resumed
                self._look(self.servers[name])
        self._ensemble.leaderless()
        self._elect()

    @staticmethod
    def _look(server: Server) -> None:
        server.drop_clients(reset=False)
        if server.state is not ServerState.LOOKING:
            server.change(ServerState.LOOKING)

    def _started(self, server: Server, term: int) -> None:
        if server.name in self._starting and server.term == term:
            del self._starting[server.name]
            self._find(server)

    def _find(self, server: Server) -> None:
        """A server without a leader joins the present one, or takes part in an election."""
        if server not in self._voters() or self.follows(server):
            return
        if self.leader is None:
            self._elect()
        elif not self.leader.paused:
            self._followers[server.name] = None
            self._ensemble.joins(server)
            self._settle()
            self._ensemble.goes_on()

    def _voters(self) -> list[Server]:
        return [
            each
            for each in self.servers.values()
            if each.state is not ServerState.DOWN and not each.paused and each.name not in self._starting
        ]

    def _elect(self) -> None:
        if self._election is None and len(self._voters()) >= self.majority:
            self._election = self._call_at(self._now_us() + self._draw_us(), self._elected)

    def _elected(self) -> None:
        self._election = None
        voters = self._voters()
        if len(voters) < self.majority:
            return
        winner = max(voters, key=lambda each: (self._logged[each.name], each.number))
        self.leader = winner
        self._followers = {each.name: None for each in voters}
        self._settle()
        self._ensemble.led_by(winner, [each for each in voters if each is not winner])

    def _settle(self) -> None:
        leader = self.leader
        active = sum(1 for name in self._followers if not self.servers[name].paused)
        self.decides = leader is not None and not leader.paused and active >= self.majority

    def _draw_us(self) -> int:
        return self._least_us + self._random.below(self._most_us - self._least_us + 1)
