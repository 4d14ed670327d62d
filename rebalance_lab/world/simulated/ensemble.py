"""The servers of a simulated ZooKeeper: one, or several with a leader.

The leader decides each write when it arrives, and answers its own clients at once. A follower passes the writes of its
clients to the leader, applies what the leader commits a little later (or much later, with `lag`), and answers only
then. Messages between two servers keep their order. A single server is its own leader, and all of this takes no time.

One simplification: the leader does not wait for acknowledgements, so a write does not take a round trip between
servers. Only times differ from a real ensemble. Without a majority the leader does wait.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from rebalance_lab.kernel import Kernel, RandomStream
from rebalance_lab.world.simulated.audit import EPOCH_SHIFT
from rebalance_lab.world.simulated.authority import Authority, Outcome
from rebalance_lab.world.simulated.channel import Call, Channel
from rebalance_lab.world.simulated.link import Link
from rebalance_lab.world.simulated.quorum import NoSuchServer, Quorum
from rebalance_lab.world.simulated.server import Server, ServerState, Turn
from rebalance_lab.world.simulated.sessions import ServerSession
from rebalance_lab.world.simulated.settings import ServerSettings
from rebalance_lab.world.simulated.tree import Tree
from rebalance_lab.world.zk.messages import Connect, Operation, Request


class Ensemble:
    """`names`: the servers', in the order of their numbers. `random` draws what it draws in a
    standalone server; `quorum_random` what happens between servers."""

    def __init__(
        self,
        kernel: Kernel,
        settings: ServerSettings,
        names: tuple[str, ...],
        random: RandomStream,
        quorum_random: RandomStream,
        plant: str | None,
    ) -> None:
        if not names or len(set(names)) != len(names) or not all(names):
            raise ValueError(f"servers {names}: give at least one name, each once")
        self.authority = Authority(kernel, settings, random, plant, self._timed_out)
        sessions = self.authority.sessions
        self.servers = {
            name: Server(name, number, Tree(), sessions, random, self) for number, name in enumerate(names, start=1)
        }
        self.quorum = Quorum(kernel, settings, quorum_random, self.servers, self)
        self._now_us = kernel.now_us
        self._random = quorum_random
        self._least_us, self._most_us = settings.replication_us
        self._lags_us: dict[str, int] = dict.fromkeys(names, 0)
        #: (from, to) -> the way between these two servers.
        self._channels = {
            (sender, receiver): Channel(kernel, self.servers[receiver], self._delay_us)
            for sender in names
            for receiver in names
            if sender != receiver
        }
        self._half_tick_us = settings.tick_ms * 1000 // 2
        #: When, in each half tick, the leader pings its followers.
        self._ping_us = quorum_random.below(self._half_tick_us) if len(names) > 1 else 0
        self._stalled: list[tuple[Server, int, Call]] = []
        #: Sessions that timed out, or were to be expired, while no leader could decide.
        self._overdue: list[ServerSession] = []
        self._doomed: list[ServerSession] = []
        leader = self._leader()
        self.authority.lead(leader.tree, self._next_epoch_zxid())
        for server in self.servers.values():
            server.zxid = self.authority.zxid

    def _leader(self) -> Server:
        leader = self.quorum.leader
        assert leader is not None, "nobody leads, and somebody decides"
        return leader

    def _next_epoch_zxid(self) -> int:
        """Where the next epoch begins; a standalone server knows none."""
        zxid = self.authority.zxid
        return zxid if len(self.servers) == 1 else (zxid >> EPOCH_SHIFT) + 1 << EPOCH_SHIFT

    def server(self, name: str) -> Server:
        """Raises NoSuchServer."""
        if name not in self.servers:
            raise NoSuchServer(f"no server is named {name!r}; there are {', '.join(self.servers)}")
        return self.servers[name]

    def lag(self, server: Server, delay_us: int) -> None:
        """From now commits wait at `server` for this long after they came; those that already wait there, too. Raises
        ValueError unless a majority has no lag: the model's leader does not wait for acknowledgements."""
        lags_us = self._lags_us | {server.name: delay_us}
        slow = [name for name, lag_us in lags_us.items() if lag_us]
        if delay_us < 0 or len(self.servers) - len(slow) < self.quorum.majority:
            raise ValueError(
                f"lag of {delay_us} us at {server.name}: at least {self.quorum.majority} of {len(self.servers)} "
                f"servers must be without one; with it {', '.join(slow)} would lag"
            )
        self._lags_us = lags_us
        for (_, receiver), channel in self._channels.items():
            if receiver == server.name:
                channel.lag(delay_us)

    def pause(self, server: Server) -> None:
        """Raises NoSuchServer unless it runs."""
        self.quorum.pause(server)
        if not self.quorum.decides:
            for each in self.servers.values():
                each.doubt()

    # -- between servers --------------------------------------------------------------------

    def _to(self, server: Server) -> Channel:
        """The leader's way to a follower."""
        return self._channels[self._leader().name, server.name]

    def _ask(self, server: Server, call: Call) -> None:
        """A server asks its leader: `call` decides. What cannot be decided now waits."""
        leader = self.quorum.leader
        if leader is None or not self.quorum.follows(server):
            return  # its clients are about to learn that it has no leader
        if leader is server:
            self._at_leader(server, server.term, call)
        else:
            self._channels[server.name, leader.name].post(partial(self._at_leader, server, server.term, call))

    def _at_leader(self, server: Server, term: int, call: Call) -> None:
        if server.term != term:
            return
        if self.quorum.decides:
            call()
        else:
            self._stalled.append((server, term, call))

    def _delay_us(self) -> int:
        return self._least_us + self._random.below(self._most_us - self._least_us + 1)

    # -- clients ----------------------------------------------------------------------------

    def connect(self, server: Server, link: Link, message: Connect) -> None:
        """A client asks `server` for a new session, or to go on with one."""
        decide = self._open if message.session_id == 0 else self._revalidate
        if server is self.quorum.leader and self.quorum.decides:
            decide(server, link, message)
        else:
            self._ask(server, partial(decide, server, link, message))

    def _open(self, server: Server, link: Link, message: Connect) -> None:
        session = self.authority.open(message.timeout_ms, server.number)
        self._leader().committed(self.authority.zxid, len(self.authority.transactions), ())
        if server is not self.quorum.leader:
            self.authority.sessions.heard_now(session)
        self._replicate(server, partial(self._attach, server, link, session))

    def _revalidate(self, server: Server, link: Link, message: Connect) -> None:
        session = self.authority.sessions.living.get(message.session_id)
        if session is None:
            answer: Call = partial(server.refuse_dead, link, message.session_id)
        else:
            self._leave(session)
            self.authority.sessions.heard_now(session)
            answer = partial(self._attach, server, link, session)
        if server is self.quorum.leader:
            answer()
        else:
            self._to(server).post(answer)

    def _attach(self, server: Server, link: Link, session: ServerSession) -> None:
        """The session may have ended, or moved on, while the leader's answer was under way."""
        if session.id not in self.authority.sessions.living:
            server.refuse_dead(link, session.id)
        else:
            self._leave(session)
            server.attach(link, session)

    def _leave(self, session: ServerSession) -> None:
        """End the session's connection, whichever server has it."""
        if session.link is not None:
            self.servers[session.link.server.name].leave(session)

    def write(self, server: Server, link: Link, session: ServerSession, request: Request) -> None:
        """A client's create, set, delete, multi or close."""
        if server is self.quorum.leader and self.quorum.decides and not server.waits(link):
            self._decide(server, session, request, partial(self._answer, server, link, session, request))
            return
        turn = server.await_turn(link, request)
        if self._lags_us[server.name] or not self.quorum.decides:
            link.doubt()  # its pings wait behind the write
        self._ask(server, partial(self._decide_moved, server, link, session, request, turn))

    def _decide_moved(self, server: Server, link: Link, session: ServerSession, request: Request, turn: Turn) -> None:
        """Decide, unless the session has ended or moved to another connection: then no client waits, and nothing is
        done (ZooKeeper's SessionMoved)."""
        if session.link is link and session.id in self.authority.sessions.living:
            self._decide(server, session, request, partial(self._take_turn, server, link, session, turn))

    def _decide(
        self, server: Server, session: ServerSession, request: Request, done: Callable[[Outcome], None]
    ) -> None:
        if request.operation is Operation.CLOSE:
            self._end(session, request.xid)
            outcome = Outcome((), None)
        else:
            outcome = self.authority.write(session, request)
            self._leader().committed(self.authority.zxid, len(self.authority.transactions), outcome.records)
        self._replicate(server, partial(done, outcome))

    def _answer(self, server: Server, link: Link, session: ServerSession, request: Request, outcome: Outcome) -> None:
        server.answer(link, session, request, outcome.value, outcome.code)
        if request.operation is Operation.CLOSE:
            server.leave(session)

    def _take_turn(self, server: Server, link: Link, session: ServerSession, turn: Turn, outcome: Outcome) -> None:
        server.decided(link, turn, outcome)
        if turn.closes:
            server.leave(session)

    def expire(self, session: ServerSession) -> None:
        """Expire a session at the servers. Its server closes the connection as soon as it learns of it. Without a
        leader that can decide, the expiry waits."""
        if not self.quorum.decides:
            self._doomed.append(session)
            return
        server = self._leader() if session.link is None else self.servers[session.link.server.name]
        if server is self.quorum.leader:
            server.closes(session)
        self._end(session, 0)
        self._replicate(server, partial(server.leave, session), before=partial(server.closes, session))

    def take_over(self, session: ServerSession) -> None:
        """A second connection shows the session's id and password, and closes the session. Its server
        closes the client's connection before that (ZooKeeperServer.processConnectRequest, 3.9.3), so the
        client gets no event of the session's end."""
        self._leave(session)
        self.expire(session)

    def _timed_out(self, session: ServerSession) -> None:
        if self.quorum.decides:
            self.expire(session)
        else:
            self._overdue.append(session)

    def _end(self, session: ServerSession, cxid: int) -> None:
        paths = self.authority.end(session, cxid)
        self._leader().ended_session(self.authority.zxid, len(self.authority.transactions), paths)

    # -- what was committed reaches the followers ------------------------------------------

    def _replicate(self, origin: Server, done: Call, before: Call | None = None) -> None:
        """Tell all followers; `done` once `origin` has applied it, at once if it leads. `before`:
        what a follower that is the origin does just before."""
        leader = self._leader()
        if len(self.servers) > 1:
            for server in self.servers.values():
                if server is not leader and self.quorum.follows(server):
                    calls = (
                        [before, self._catching_up(server), done] if server is origin else [self._catching_up(server)]
                    )
                    self._to(server).commit(partial(_in_turn, [call for call in calls if call is not None]))
        if origin is leader:
            done()

    def _catching_up(self, server: Server) -> Call:
        log = self.authority.transactions
        return partial(server.catch_up, log, len(log), self.authority.zxid)

    def told_us(self, server: Server, heard_us: int) -> int:
        """When the leader learns of a client that `server` heard at `heard_us`: from the follower's answer to the
        leader's next ping. The latency of both messages is not counted."""
        leader = self.quorum.leader
        if leader is None or server is leader:
            return heard_us
        return heard_us + (self._ping_us - heard_us) % self._half_tick_us

    # -- leaders come and go: called by `quorum` ---------------------------------------------

    def led_by(self, leader: Server, followers: list[Server]) -> None:
        """A leader was elected. The followers have not heard from it yet."""
        log = self.authority.transactions
        leader.catch_up(log, len(log), self.authority.zxid)
        self.authority.lead(leader.tree, self._next_epoch_zxid())
        leader.zxid = self.authority.zxid
        self._ping_us = self._now_us() % self._half_tick_us
        self._serve(leader)
        self._overdue.clear()
        sessions = self.authority.sessions
        for session in tuple(sessions.living.values()):  # a new leader gives everybody all the time there is
            sessions.heard_now(session)
        for server in followers:
            self.joins(server)
        self.goes_on()

    def joins(self, server: Server) -> None:
        """A server has found the present leader."""
        self._to(server).post(partial(_in_turn, [self._catching_up(server), partial(self._serve, server)]))

    @staticmethod
    def _serve(server: Server) -> None:
        if server.state is ServerState.LOOKING:
            server.change(ServerState.SERVING)

    def leaderless(self) -> None:
        """There is no leader until `led_by`."""
        self._stalled.clear()

    def goes_on(self) -> None:
        """Decide what waited for a paused leader, or for a majority."""
        if not self.quorum.decides:
            return
        stalled, self._stalled = self._stalled, []
        for server, term, call in stalled:
            self._at_leader(server, term, call)
        doomed, self._doomed = self._doomed, []
        overdue, self._overdue = self._overdue, []
        for session in doomed:
            if session.id in self.authority.sessions.living:
                self.expire(session)
        for session in overdue:
            self.authority.sessions.overdue(session)


def _in_turn(calls: list[Call]) -> None:
    for call in calls:
        call()
