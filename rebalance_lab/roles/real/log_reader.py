"""The history of one real member: turns its log4j lines into events like those of the lab's members.

When events are recorded, compared with the lab's members:

- *belief*: OWNED when `selected partitions` is logged, after the member's record was swapped, at the end of the line's
  millisecond. DISOWNED when `Releasing partition ownership` is logged, before the first delete is sent; or `ZK expired;
  release old …`, before the member's record is cleared; or, in a shutdown, when all connections have stopped. So a
  recorded belief may be up to a millisecond too short, never too long.
- *effect*: a fetch request for a partition is work on it. The shutdown of the fetcher ends the work, and is not a
  fetch.
- *operations*: see `client_lines`.
- a trigger is recorded when its listener is called, a moment before the flag is set.
- a rebalance that used up its retries throws after its last back-off. It ends when its caller logs the exception, or at
  the latest when the next rebalance or a shutdown is seen to have the lock.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.recorder import Sink
from rebalance_lab.roles.real.attempts import Attempt, MembersZxid
from rebalance_lab.roles.real.client_lines import SESSION_KINDS, read_client_line
from rebalance_lab.roles.real.event_writer import EventWriter
from rebalance_lab.wire.warnings import NO_BROKERS
from rebalance_lab.world.kafka.log_file import LogLine

_FETCH = re.compile(r"\[(\S+)\], Issuing to broker \d+ of fetch request .*?RequestInfo: (.*)$")
_FETCHER_STOPPING = re.compile(r"\[(\S+)\], Shutting down$")
_PART = re.compile(r"\[([^\[\],]+),(\d+)\] -> ")


class Fetches:
    """Records WORKED for each partition of each fetch request, at most two in each `work_period_ms`, and one with
    `last` when the fetcher is shut down, which interrupts its request. The latter is not a fetch: for
    `history.intervals` it only ends a run."""

    def __init__(self, writer: EventWriter, work_period_ms: int) -> None:
        self._writer = writer
        self._period_ms = work_period_ms
        self._fetched: dict[str, list[tuple[str, int]]] = {}
        self._reported_ms: dict[tuple[str, int], int] = {}

    def read(self, line: LogLine) -> None:
        """Process a line of a fetcher."""
        if (found := _FETCH.match(line.message)) is not None:
            places = [(topic, int(partition)) for topic, partition in _PART.findall(found[2])]
            self._fetched[found[1]] = places
            for place in places:
                if line.wall_ms - self._reported_ms.get(place, -self._period_ms) >= self._period_ms // 2:
                    self._reported_ms[place] = line.wall_ms
                    self._writer.emit(Kind.WORKED, place=place)
        elif (found := _FETCHER_STOPPING.match(line.message)) is not None:
            for place in self._fetched.pop(found[1], ()):
                self._reported_ms.pop(place, None)
                self._writer.emit(Kind.WORKED, {"last": True}, place=place)


_IDENTITY = re.compile(r"^\[(.+?)\], Connecting to zookeeper instance")
_BEGIN = re.compile(r"begin rebalancing consumer \S+ try #(\d+)$")
_END = re.compile(r"end rebalancing consumer \S+ try #(\d+)$")
_SELECTED = re.compile(r"Consumer \S+ selected partitions : (.*)$")
_OWNED = re.compile(r"([^,\s:]+):(\d+): fetched offset = -?\d+: consumed offset = (-?\d+)")
_STATE = re.compile(r"zookeeper state changed \((\w+)\)$")
_QUEUED = re.compile(r"New event: ZkEvent\[(.*) sent to [\w.]+\$(\w+)@")
_DELIVERING = re.compile(r"Delivering event #\d+ ZkEvent\[(.*) sent to [\w.]+\$(\w+)@")
_DELIVERED = re.compile(r"Delivering event #\d+ done$")
_ABOUT = re.compile(r"(?:Children|Data) of (\S+) changed")

_TROUBLE = frozenset({"WARN", "ERROR", "FATAL"})
_ASSIGNORS = frozenset({"RangeAssignor", "RoundRobinAssignor"})
#: How 0.8.2.2 logs what a rebalance throws: the watcher, the handlers of a new session and of topics, and
#: ConsoleConsumer's `main`, which ends after it.
_THROWN = re.compile(
    r"(?:error during syncedRebalance|^Error handling event ZkEvent\[.*|^error in handling child changes)$"
)
_STOPPING = "Error processing message, stopping consumer: "
_BACKOFF_WARNING = "I wrote this conflicted ephemeral node"


@dataclass(frozen=True, slots=True)
class Setting:
    """What the log does not contain. `started`: the detail of MEMBER_STARTED."""

    group: str
    started: Mapping[str, object]
    work_period_ms: int


@dataclass(slots=True)
class _Call:
    """A listener call on ZkClient's queue. `queued`: its event; None for a call that the lab's members do not have
    (there, state changes are not calls)."""

    queued: EventId | None
    path: str


class LogReader:
    """Feed it the lines of one member's log, in order. Its events go to the sink and to `take`."""

    def __init__(
        self, actor: str, setting: Setting, sink: Sink, *, wall_offset_us: int, members_zxid: MembersZxid
    ) -> None:
        self.writer = EventWriter(actor, sink, wall_offset_us)
        #: Whether it has logged that it ends by itself, because its first rebalance failed.
        self.stopping = False
        self._setting = setting
        self._members_zxid = members_zxid
        self._fetches = Fetches(self.writer, setting.work_period_ms)
        self._calls: deque[_Call] = deque()
        self._new_session = False
        self._attempt: Attempt | None = None
        self._triggered: EventId | None = None
        self._owned: list[tuple[str, int]] = []
        self._closing = False
        self._expects_error = False
        self._rebalancing: str | None = None  # the thread that does
        self._attempts = 0
        self._readers = {
            "ClientCnxn": self._client,
            "ZkClient": self._state,
            "ZkEventThread": self._listener,
            "ZookeeperConsumerConnector": self._connector,
            "ConsumerFetcherManager": self._manager,
            "ConsumerFetcherThread": self._fetches.read,
        }

    def process_started(self, identity: Mapping[str, object], wall_ms: int) -> None:
        """Record that the process was started."""
        self.writer.at_ms = wall_ms
        self.writer.emit(Kind.PROCESS_STARTED, dict(identity))

    def feed(self, line: LogLine) -> None:
        """Process one line."""
        self.writer.at_ms = max(self.writer.at_ms, line.wall_ms)
        if not line.level:
            self._continued(line.message)
            return
        self._expects_error = False
        if line.level == "ERROR":
            self._trouble(line)
        if line.logger in _ASSIGNORS:
            if self._attempt is not None:
                self._attempt.heard(line.message)
        elif (reader := self._readers.get(line.logger)) is not None:
            reader(line)
        if (line.level in _TROUBLE or _BACKOFF_WARNING in line.message) and self.writer.member is not None:
            self.writer.emit(Kind.WARNED, {"message": line.message})

    def take(self) -> list[Event]:
        """The events written since the last call."""
        return self.writer.take()

    def _trouble(self, line: LogLine) -> None:
        stopping = line.message == _STOPPING
        self.stopping = self.stopping or stopping
        if self._rebalancing == line.thread and (stopping or _THROWN.search(line.message) is not None):
            self._threw()

    # -- the ZooKeeper client ---------------------------------------------------------------

    def _client(self, line: LogLine) -> None:
        found = read_client_line(self.writer, line.message)
        if found is not None and self._attempt is not None:
            self._attempt.saw(found)

    def _state(self, line: LogLine) -> None:
        if (found := _STATE.match(line.message)) is not None and found[1] in SESSION_KINDS:
            self.writer.emit(SESSION_KINDS[found[1]])

    def _listener(self, line: LogLine) -> None:
        """Process a delivery. ZkClient's queue is in order, so it is the first call that waits."""
        if (found := _QUEUED.match(line.message)) is not None:
            self._queued(found[1])
        elif (found := _DELIVERING.match(line.message)) is not None:
            self._new_session = found[1] == "New session event"
            if found[2] == "ZKRebalancerListener":
                self._trigger(found[1])
        elif _DELIVERED.match(line.message) is not None and self._calls:
            call = self._calls.popleft()
            if call.queued is not None:
                detail = {"path": call.path, "of": call.queued[1]}
                self.writer.emit(Kind.NOTIFICATION_HANDLED, detail, cause=call.queued)

    def _queued(self, what: str) -> None:
        about = _ABOUT.match(what)
        path = "" if about is None else about[1]
        ours = about is not None or what == "New session event"
        queued = self.writer.emit(Kind.NOTIFICATION_QUEUED, {"path": path, "what": what}) if ours else None
        self._calls.append(_Call(queued, path))

    def _trigger(self, what: str) -> None:
        about = _ABOUT.match(what)
        path = "" if about is None else about[1]
        detail: dict[str, object] = {"path": path, "coalesced": self._triggered is not None}
        cause = self._calls[0].queued if self._calls else None
        self._triggered = self.writer.emit(Kind.REBALANCE_TRIGGERED, detail, cause=cause)

    # -- the connector ----------------------------------------------------------------------

    def _connector(self, line: LogLine) -> None:
        message = line.message
        if (found := _IDENTITY.match(message)) is not None:
            self.writer.member, self.writer.group = found[1], self._setting.group
            self.writer.emit(Kind.MEMBER_STARTED, dict(self._setting.started))
        elif (found := _BEGIN.search(message)) is not None:
            self._begin(int(found[1]), line.thread)
        elif (found := _END.search(message)) is not None:
            self._end()
        elif (found := _SELECTED.search(message)) is not None:
            self._selected(found[1])
        elif message.endswith("Releasing partition ownership"):
            self._disown()
            if self._attempt is not None:
                self._attempt.released = True
        elif "ZK expired; release old broker" in message:
            self._disown()
        elif message.endswith("triggering rebalance"):
            self._trigger(f"Data of {message.partition('Topic info for path ')[2].split()[0]} changed")
        elif "exception during rebalance" in message:
            self._expects_error = True
        else:
            self._rest(message)

    def _rest(self, message: str) -> None:
        attempt = self._attempt
        if message.endswith(NO_BROKERS) and attempt is not None:
            attempt.succeeded = True
        elif message.endswith("ZKConsumerConnector shutting down"):
            self._closing = True
            self.writer.emit(Kind.MEMBER_CLOSING)
        elif "ZKConsumerConnector shutdown completed" in message:
            self._disown()
            self._threw()
            self.writer.emit(Kind.MEMBER_CLOSED)
        elif attempt is not None and ("successfully owned" in message or "waiting for the partition" in message):
            self._decided(attempt)
            attempt.heard(message)

    def _begin(self, number: int, thread: str) -> None:
        if number == 0:
            self._threw()
            self._rebalancing = thread
            by = "session" if self._new_session else "topics"
            by = "create" if thread == "main" else "watcher" if thread.endswith("_watcher_executor") else by
            cause = self._triggered if by == "watcher" else None
            if by == "watcher":
                self._triggered = None
            self.writer.emit(Kind.REBALANCE_BEGAN, {"by": by}, cause=cause)
        self._attempts = number + 1
        self.writer.emit(Kind.ATTEMPT_BEGAN, {"attempt": number})
        self._attempt = Attempt(number, self._setting.group)

    def _end(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        self._decided(attempt)
        if attempt.succeeded:
            self._ended(RebalanceOutcome.OK)
        else:
            self.writer.emit(Kind.ATTEMPT_FAILED, attempt.failure(shutting_down=self._closing))

    def _decided(self, attempt: Attempt) -> None:
        if attempt.decided:
            return
        detail = attempt.decision(self._members_zxid)
        if detail is not None:
            attempt.decided = True
            self.writer.emit(Kind.DECIDED, detail)

    def _threw(self) -> None:
        """Record that the running rebalance, if any, has used up its retries."""
        if self._rebalancing is not None:
            self._ended(RebalanceOutcome.SHUTDOWN if self._closing else RebalanceOutcome.FAILED)

    def _ended(self, outcome: RebalanceOutcome) -> None:
        self._rebalancing = None
        self.writer.emit(Kind.REBALANCE_ENDED, {"outcome": outcome, "attempts": self._attempts})

    def _selected(self, text: str) -> None:
        self._disown()
        if self._attempt is not None:
            self._decided(self._attempt)
            self._attempt.succeeded = True
        for topic, partition, offset in _OWNED.findall(text):
            place = (topic, int(partition))
            self._owned.append(place)
            detail: dict[str, object] = {"thread": f"{self.writer.member}-0", "offset": int(offset)}
            self.writer.emit(Kind.OWNED, detail, place=place, late=True)

    def _disown(self) -> None:
        owned, self._owned = self._owned, []
        for place in owned:
            self.writer.emit(Kind.DISOWNED, place=place)

    def _manager(self, line: LogLine) -> None:
        if self._closing and line.message.endswith("All connections stopped"):
            self._disown()

    def _continued(self, message: str) -> None:
        """Process a further line of an exception. The first one names it."""
        if self._expects_error and self._attempt is not None:
            self._attempt.error = message.strip()
        self._expects_error = False
