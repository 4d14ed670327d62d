"""The history of one real broker: turns the log4j lines of Kafka 3.9.1 in ZooKeeper mode into events like those of the
lab's brokers (`history.replicas`).

- *belief*: what a broker's own lines say of its roles: `Leader … starts`, `Follower … starts`, the ISR that it proposes
  and knows, the high watermark, and whether it is the controller. A belief begins at the end of the line's millisecond.
- *effect*: APPENDED is the append of a thread that handles requests. That of a fetcher's thread is replication.
- *operations*: see `client_lines`. Of the multi that elects a controller Kafka logs the request before it is sent, and
  who won when it is answered.

The levels of the loggers are in LEVELS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rebalance_lab.history.events import Event, EventId, Kind
from rebalance_lab.history.recorder import Sink
from rebalance_lab.history.replicas import (
    APPENDED,
    COMMITTED,
    CONTROLS,
    CONTROLS_NO_MORE,
    FOLLOWS,
    ISR_ASSUMED,
    LEADS,
    METADATA_FORGOTTEN,
    METADATA_KNOWN,
    OBEYS,
    REPLICA_ENDED,
    SHUTS_DOWN,
    TRUNCATED,
)
from rebalance_lab.history.writes import REGISTERED, REPORTED
from rebalance_lab.roles.real.client_lines import SESSION_KINDS, read_client_line
from rebalance_lab.roles.real.event_writer import EventWriter
from rebalance_lab.roles.real.packets import MULTI
from rebalance_lab.wire.paths import CONTROLLER, CONTROLLER_EPOCH
from rebalance_lab.world.kafka.log_file import LogLine

#: What must be logged for the reader to see everything. The rest is INFO.
LEVELS = {
    "org.apache.zookeeper.ClientCnxn": "DEBUG",
    "kafka.zookeeper.ZooKeeperClient": "DEBUG",
    "kafka.zk.KafkaZkClient": "DEBUG",
    "kafka.controller.KafkaController": "DEBUG",
    "kafka.cluster.Partition": "DEBUG",
    "kafka.log.UnifiedLog": "TRACE",
    "state.change.logger": "TRACE",
}

_STATE = re.compile(r"Received event: WatchedEvent state:(\w+) type:None ")
_REGISTERED = re.compile(r"Registered broker \d+ at path \S+ with addresses: \w+://(.+?):(\d+), czxid .*?: (\d+)$")
_ASKS = re.compile(r"Try to create /controller and increment controller epoch to \d+ ")
_ELECTED = re.compile(r" successfully elected as the controller\. Epoch incremented to (\d+) ")
_NOT_ELECTED = re.compile(r"Broker \d+ was elected as controller instead of |A controller has been elected but just ")
_ORDER = re.compile(
    r"Received LeaderAndIsr request LeaderAndIsrPartitionState\(topicName='(.+?)', partitionIndex=(\d+), "
    r"controllerEpoch=(\d+), .*? replicas=\[(.*?)\]"
)
_PLACE = r"(\S+)-(\d+) "
_LEADER = re.compile(
    rf"Leader {_PLACE}with topic id .* starts at leader epoch (\d+) from offset (\d+) with partition epoch \d+, "
    r"high watermark (\d+), ISR \[(.*?)\]"
)
_FOLLOWER = re.compile(
    rf"Follower {_PLACE}starts at leader epoch (\d+) from offset (\d+) with partition epoch \d+ and high watermark "
    r"(\d+)\. Current leader is (-?\d+)\."
)
_FROM = r"controller (\d+) epoch (\d+)"
_BEGINS = re.compile(rf"Handling LeaderAndIsr request correlationId (\d+) from {_FROM} starting the become-")
_TOLD = re.compile(rf"UpdateMetadata request sent by {_FROM} with correlation id (\d+)$")
_CACHES = re.compile(
    r"Cached leader info UpdateMetadataPartitionState\(topicName='(.+?)', partitionIndex=(\d+), "
    r"controllerEpoch=\d+, leader=(-?\d+), leaderEpoch=(\d+), isr=\[(.*?)\]"
)
_FORGETS = re.compile(r"Deleted partition (\S+)-(\d+) from metadata cache ")
_STOPPED = re.compile(r"Received StopReplica request .* for partition (\S+)-(\d+)$")
_PARTITION = re.compile(rf"\[Partition {_PLACE}broker=\d+\] (.*)$")
_LOG = re.compile(r"\[UnifiedLog partition=(\S+)-(\d+), dir=.*?\] (.*)$")
_PROPOSES = re.compile(r"Submitting ISR state change .*?sentLeaderAndIsr=LeaderAndIsr\(.*?isrWithBrokerEpoch=(.*?\))\)")
_BROKER = re.compile(r"brokerId=(\d+)")
_KNOWS = re.compile(r"ISR updated to ([\d,]*) ")
_COMMITS = re.compile(r"High watermark updated from \(offset=(\d+), .*? to \(offset=(\d+), ")
_APPENDS = re.compile(r"Appended message set with last offset: (\d+), first offset: (\d+), ")
_WATERMARK = re.compile(r"Setting high watermark \(offset=(\d+), ")
_CUTS = re.compile(r"Truncating to offset (\d+)$")

#: Threads that serve requests, and so append what clients send.
_REQUESTS = "data-plane-kafka-request-handler"

Place = tuple[str, int]


@dataclass(slots=True)
class _Replica:
    """What the log has said of one. `order`: controller epoch and replicas of the last order for it. `end`: where its
    log ends. `committed`: the high watermark that a leader has reached; `gaps`: moves of it, each from and to an
    offset, that the log has passed over."""

    order: tuple[int, list[int]] | None = None
    leads: bool = False
    leader_epoch: int = -1
    isr: list[int] = field(default_factory=list)
    committed: int = -1
    gaps: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0
    high_watermark: int = 0


@dataclass(slots=True)
class _Asked:
    """A request to become the controller that has no answer yet. `zxid`: of the server when it replied."""

    invoked: EventId
    zxid: int | None = None


class BrokerLogReader:
    """Feed it the lines of one broker's log, in order. Its events go to the sink and to `take`."""

    def __init__(self, actor: str, sink: Sink, *, wall_offset_us: int) -> None:
        self.writer = EventWriter(actor, sink, wall_offset_us)
        self.writer.member = actor
        self._replicas: dict[Place, _Replica] = {}
        self._asked: _Asked | None = None
        self._controls = False
        self._obeyed: tuple[str, ...] = ()
        self._metadata: dict[Place, dict[str, object]] = {}
        self._readers: dict[str, Callable[[LogLine], None]] = {
            "ClientCnxn": self._client,
            "ZooKeeperClient": self._session,
            "KafkaZkClient": self._registry,
            "KafkaController": self._controller,
            "KafkaServer": self._server,
            "logger": self._state_change,  # state.change.logger
            "Partition": self._partition,
            "UnifiedLog": self._log,
        }

    def process_started(self, identity: Mapping[str, object], wall_ms: int) -> None:
        """Record that the process was started, also again."""
        self._replicas.clear()
        self._metadata.clear()
        self._obeyed = ()
        self._asked, self._controls = None, False
        self.writer.session = None
        self.writer.at_ms = max(self.writer.at_ms, wall_ms)
        self.writer.emit(Kind.PROCESS_STARTED, dict(identity))

    def feed(self, line: LogLine) -> None:
        """Process one line."""
        self.writer.at_ms = max(self.writer.at_ms, line.wall_ms)
        reader = self._readers.get(line.logger)
        if line.level and reader is not None:
            reader(line)

    def take(self) -> list[Event]:
        """The events written since the last call."""
        return self.writer.take()

    # -- its session and the controller ------------------------------------------------------

    def _client(self, line: LogLine) -> None:
        found = read_client_line(self.writer, line.message)
        if found is not None and found.operation == MULTI and self._asked is not None and self._asked.zxid is None:
            self._asked.zxid = found.zxid

    def _session(self, line: LogLine) -> None:
        if (found := _STATE.search(line.message)) is not None and found[1] in SESSION_KINDS:
            self.writer.emit(SESSION_KINDS[found[1]])

    def _registry(self, line: LogLine) -> None:
        if (found := _REGISTERED.search(line.message)) is not None:
            detail = {"broker_epoch": int(found[3]), "host": found[1], "port": int(found[2])}
            self.writer.emit(REPORTED, {"event": REGISTERED, **detail})
        elif _ASKS.match(line.message) is not None:
            parts = [["create", CONTROLLER], ["set", CONTROLLER_EPOCH]]
            self._asked = _Asked(self.writer.emit(Kind.INVOKED, {"op": MULTI, "path": "", "parts": parts}))

    def _controller(self, line: LogLine) -> None:
        if (found := _ELECTED.search(line.message)) is not None:
            self._answered(Kind.OK)
            self._controls = True
            self.writer.emit(CONTROLS, {"epoch": int(found[1])}, late=True)
        elif _NOT_ELECTED.search(line.message) is not None:
            self._answered(Kind.FAILED_OP, error="not elected")  # the log does not show the code
        elif line.message.endswith("Resigning") and self._controls:
            self._controls = False
            self.writer.emit(CONTROLS_NO_MORE, {"why": "it resigns"})

    def _answered(self, kind: Kind, **more: object) -> None:
        asked, self._asked = self._asked, None
        if asked is not None:
            detail = {"op": MULTI, "path": "", "of": asked.invoked[1], **more}
            self.writer.emit(kind, detail, cause=asked.invoked, zxid=asked.zxid)

    def _server(self, line: LogLine) -> None:
        if line.message.endswith("Starting controlled shutdown"):
            self.writer.emit(SHUTS_DOWN)

    # -- its replicas ------------------------------------------------------------------------

    def _replica(self, found: re.Match[str]) -> tuple[Place, _Replica]:
        """Of a line that begins with topic and partition."""
        place = found[1], int(found[2])
        return place, self._replicas.setdefault(place, _Replica())

    def _state_change(self, line: LogLine) -> None:
        if (told := _TOLD.search(line.message)) is not None:
            self._obeys("update-metadata", told[1], told[2], told[3])
            self._caches(line)
        elif (begins := _BEGINS.search(line.message)) is not None:
            self._obeys("leader-and-isr", begins[2], begins[3], begins[1])
        elif (found := _ORDER.search(line.message)) is not None:
            self._replica(found)[1].order = int(found[3]), _numbers(found[4])
        elif (found := _LEADER.search(line.message)) is not None:
            self._leads(found)
        elif (found := _FOLLOWER.search(line.message)) is not None:
            self._follows(found)
        elif (found := _STOPPED.search(line.message)) is not None:
            place, replica = self._replica(found)
            replica.leads = False
            self.writer.emit(REPLICA_ENDED, {"role": "stopped"}, place=place)

    def _obeys(self, order: str, controller: str, epoch: str, request: str) -> None:
        """There is a line for each partition, and one event for each request."""
        obeyed = order, controller, epoch, request
        if obeyed != self._obeyed:
            self._obeyed = obeyed
            detail = {"order": order, "controller": int(controller), "controller_epoch": int(epoch), "broker_epoch": -1}
            self.writer.emit(OBEYS, detail)

    def _caches(self, line: LogLine) -> None:
        """What the broker tells clients of a partition from here on, if it is something else than before."""
        if (found := _CACHES.search(line.message)) is not None:
            place = found[1], int(found[2])
            detail: dict[str, object] = {
                "leader": int(found[3]),
                "leader_epoch": int(found[4]),
                "isr": _numbers(found[5]),
            }
            if self._metadata.get(place) != detail:
                self._metadata[place] = detail
                self.writer.emit(METADATA_KNOWN, detail, place=place)
        elif (found := _FORGETS.search(line.message)) is not None:
            place = found[1], int(found[2])
            if self._metadata.pop(place, None) is not None:
                self.writer.emit(METADATA_FORGOTTEN, place=place)

    def _leads(self, found: re.Match[str]) -> None:
        place, replica = self._replica(found)
        replica.leads, replica.leader_epoch, replica.isr = True, int(found[3]), _numbers(found[6])
        replica.end, replica.high_watermark = int(found[4]), int(found[5])
        replica.committed, replica.gaps = replica.high_watermark, []
        if replica.order is None:
            where = f"{self.writer.actor} leads {place[0]}-{place[1]} in leader epoch {replica.leader_epoch}"
            raise ValueError(f"{where}, and its log has no order for that; state.change.logger must be at TRACE")
        controller_epoch, replicas = replica.order
        detail = {
            "leader_epoch": replica.leader_epoch,
            "controller_epoch": controller_epoch,
            "isr": replica.isr,
            "replicas": replicas,
            "end_offset": replica.end,
            "high_watermark": replica.high_watermark,
        }
        self.writer.emit(LEADS, detail, place=place, late=True)

    def _follows(self, found: re.Match[str]) -> None:
        place, replica = self._replica(found)
        replica.leads, replica.leader_epoch = False, int(found[3])
        replica.end, replica.high_watermark = int(found[4]), int(found[5])
        detail = {
            "leader": int(found[6]),
            "leader_epoch": replica.leader_epoch,
            "end_offset": replica.end,
            "high_watermark": replica.high_watermark,
        }
        self.writer.emit(FOLLOWS, detail, place=place, late=True)

    def _partition(self, line: LogLine) -> None:
        if (found := _PARTITION.match(line.message)) is None:
            return
        place, replica = self._replica(found)
        if (isr := _PROPOSES.match(found[3])) is not None:
            self._assumes(place, replica, [int(each) for each in _BROKER.findall(isr[1])])
        elif (isr := _KNOWS.match(found[3])) is not None:
            replica.isr = _numbers(isr[1])
            self._assumes(place, replica, None)
        elif (moved := _COMMITS.match(found[3])) is not None:
            self._commits(place, replica, int(moved[1]), int(moved[2]))

    def _assumes(self, place: Place, replica: _Replica, proposed: list[int] | None) -> None:
        detail = {"leader_epoch": replica.leader_epoch, "isr": replica.isr, "proposed": proposed}
        self.writer.emit(ISR_ASSUMED, detail, place=place, late=True)

    def _commits(self, place: Place, replica: _Replica, before: int, offset: int) -> None:
        """A high watermark moved. Two threads may log two moves in the other order: the one that comes late fills the
        gap that the other one left, and says nothing new. Whatever else moves to a lower offset is a fall."""
        gap = next((each for each in replica.gaps if each[0] <= before < offset <= each[1]), None)
        if gap is not None:
            replica.gaps.remove(gap)
            replica.gaps += [each for each in ((gap[0], before), (offset, gap[1])) if each[0] < each[1]]
            return
        if before > replica.committed:
            replica.gaps.append((replica.committed, before))
        replica.committed = replica.high_watermark = offset
        self.writer.emit(COMMITTED, {"offset": offset, "leader_epoch": replica.leader_epoch}, place=place, late=True)

    def _log(self, line: LogLine) -> None:
        if (found := _LOG.match(line.message)) is None:
            return
        place, replica = self._replica(found)
        if (appended := _APPENDS.match(found[3])) is not None:
            replica.end = int(appended[1]) + 1
            if line.thread.startswith(_REQUESTS):
                detail = {"leader_epoch": replica.leader_epoch, "first": int(appended[2]), "last": int(appended[1])}
                self.writer.emit(APPENDED, detail, place=place)
        elif (mark := _WATERMARK.match(found[3])) is not None:
            replica.high_watermark = int(mark[1])
        elif (cut := _CUTS.match(found[3])) is not None:
            detail = {
                "from_offset": replica.end,
                "to_offset": int(cut[1]),
                "high_watermark": replica.high_watermark,
                "leader_epoch": replica.leader_epoch,
            }
            replica.end = int(cut[1])
            self.writer.emit(TRUNCATED, detail, place=place)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each.strip()]
