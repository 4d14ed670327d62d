"""`join`: one member of a group, in this process."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rebalance_lab.assignors import TopicPartition, UnknownAssignor
from rebalance_lab.cli.exit_codes import UNKNOWN
from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import Rules, RulesOption, ZooKeeperOption, key_values
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel.interruption import SIGNALS, Interrupted, undisturbed
from rebalance_lab.roles.connection import ConnectionReport, Standing
from rebalance_lab.roles.consumer import CONNECT, GROUP, Consumer, NotLeft, Partitions
from rebalance_lab.wire.errors import InvalidFilter, UnsupportedFilter
from rebalance_lab.wire.paths import topic_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.live.security import BadSecurity
from rebalance_lab.world.zk.connect_string import BadConnectString, parse
from rebalance_lab.zkclient import ZkTimeoutException
from zkconsumer.errors import IllegalArgumentException, InvalidConfigException, NotSupported

#: Errors with which a member refuses or gives up. Their messages are written for users.
REFUSALS = (
    BadSecurity,
    UnknownAssignor,
    IllegalArgumentException,
    InvalidConfigException,
    InvalidFilter,
    NotSupported,
    UnsupportedFilter,
    ZkTimeoutException,
)

#: Far more than needed. Each stream is a name in a list that every member sorts.
STREAMS_LIMIT = 10_000


#: So many warnings that differ only in numbers are printed.
MOST_ALIKE = 3

_NUMBER = re.compile(r"\d+")


class OwnershipLines:
    """Prints a line for each change of what the member owns. `topics`: those that --topic names."""

    def __init__(self, topics: Collection[str] = ()) -> None:
        self._unread = {topic_path(topic): topic for topic in topics}
        self._last: Event | None = None
        self._told: list[TopicPartition] = []
        self._believed: list[TopicPartition] = []
        self._alike, self._warnings = "", 0
        self.connected = True

    def event(self, event: Event) -> None:
        """Report an event on stderr if it matters to the user, and keep the time and the owner of changes."""
        if event.kind is not Kind.WARNED:
            self._end_warnings()
        if event.kind is Kind.MEMBER_STARTED:
            _say(f"joining as {event.member}; Ctrl-C leaves")
        elif event.kind is Kind.WARNED:
            self._warn(str(event.of("message") or "warning"))
        elif event.kind is Kind.EXPIRED:
            _say("the ZooKeeper session has ended: others may own these partitions already")
        elif event.kind in {Kind.OWNED, Kind.DISOWNED}:
            self._last = event
        elif event.kind is Kind.FAILED_OP and event.of("error") == NoNode.__name__:
            self._missing(str(event.of("path")))

    def _warn(self, message: str) -> None:
        """Print a warning. Of those that differ only in numbers and follow each other, as one for each stream, only the
        first ones are printed."""
        alike = _NUMBER.sub("", message)
        if alike != self._alike:
            self._end_warnings()
            self._alike = alike
        self._warnings += 1
        if self._warnings <= MOST_ALIKE:
            _say(message)

    def _end_warnings(self) -> None:
        """Say how many warnings were not printed."""
        if self._warnings > MOST_ALIKE:
            _say(f"{self._warnings - MOST_ALIKE:,} more warnings like the last one")
        self._alike, self._warnings = "", 0

    def _missing(self, path: str) -> None:
        """Say once that a topic does not exist. Kafka's own sentence, that a thread consumes none of its partitions, is
        also said of a topic with fewer partitions than threads."""
        topic = self._unread.pop(path, None)
        if topic is not None:
            _say(f"topic {topic} does not exist in this ZooKeeper; the member stays, and it may be created later")

    def owned(self, partitions: Partitions) -> None:
        self._print([TopicPartition(topic, each) for topic, those in partitions.items() for each in those])

    def lost(self, _partitions: Partitions) -> None:
        self._print([])

    def connection(self, report: ConnectionReport) -> None:
        """Report a change of the connection. What the member believes it owns is not said to be owned while others may
        own it."""
        _say(report.text)
        self.connected = report.standing is Standing.CONNECTED
        if report.standing is Standing.IN_DOUBT:
            self.in_doubt()
        elif report.again and self._believed:
            self._told, self._believed = self._believed, []
            self._put(_now_us(), owned=self._told)

    def in_doubt(self) -> None:
        """Print that nothing is surely owned, and what the member believes, if it believes that it owns something."""
        if self._told:
            self._believed, self._told = self._told, []
            self._put(_now_us(), owned=[], believed=self._believed)

    def _print(self, owned: list[TopicPartition]) -> None:
        if self._last is not None and owned != self._told:
            self._told, self._believed = owned, []
            self._put(self._last.at_us, owned=owned)

    def _put(self, at_us: int, **partitions: list[TopicPartition]) -> None:
        assert self._last is not None, "there was a change of what it owns"
        print_json({"at_us": at_us, "member": self._last.member, **partitions})


def _now_us() -> int:
    """The clock of events."""
    return time.monotonic_ns() // 1000


def _say(text: str) -> None:
    print(f"rebalance-lab: {text}", file=sys.stderr, flush=True)


def join(
    *,
    zookeeper: ZooKeeperOption,
    group: Annotated[
        str | None,
        typer.Option("--group", help="The consumer group. It may be left out with --rules described.", metavar="G"),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", help="A topic, and its number of streams (default 1).", metavar="T[:STREAMS]"),
    ] = None,
    whitelist: Annotated[
        str | None,
        typer.Option("--whitelist", help="Read the topics that match, in STREAMS streams.", metavar="REGEX[:STREAMS]"),
    ] = None,
    blacklist: Annotated[
        str | None, typer.Option("--blacklist", help="Read the topics that do not match.", metavar="REGEX[:STREAMS]")
    ] = None,
    rules: RulesOption = Rules.described,
    assignor: Annotated[
        str | None, typer.Option("--assignor", help="range, roundrobin or ceil. Default: the one of the rule set.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="A setting of the Kafka 0.8 consumer, or a cure.", metavar="KEY=VALUE"),
    ] = None,
    security: Annotated[
        Path | None, typer.Option("--security", help="Digest, ACLs and TLS: see docs/containers.md.", metavar="FILE")
    ] = None,
) -> None:
    """Join a group as a consumer of Kafka 0.8; Ctrl-C or SIGTERM leaves it.

    The command prints a JSON line whenever the member's partitions change. A
    member without a connection for its session timeout still believes that it
    owns them; the line then has them as "believed", and "owned" is empty.
    """
    if [bool(topic), whitelist is not None, blacklist is not None].count(True) != 1:
        raise Failure("name what to consume: one or more --topic, or --whitelist, or --blacklist")
    regex, streams = _filter("--blacklist" if whitelist is None else "--whitelist", whitelist or blacklist)
    streams_of = _streams(topic or [])
    lines = OwnershipLines(streams_of)
    consumer = Consumer(
        _connect_string(zookeeper),
        group,
        streams_of,
        whitelist=regex if whitelist is not None else None,
        blacklist=regex if blacklist is not None else None,
        streams=streams,
        rules=rules,
        assignor=assignor,
        config=_settings(group, config),
        security=security,
        on_owned=lines.owned,
        on_lost=lines.lost,
        on_connection=lines.connection,
        on_event=lines.event,
    )
    _run(consumer, lines)


def _connect_string(text: str) -> str:
    """Raises Failure, before the member says that it joins."""
    try:
        parse(text)
    except BadConnectString as error:
        raise Failure(f"--zookeeper {error}") from error
    return text


def _settings(group: str | None, config: list[str] | None) -> dict[str, str]:
    """The settings of --config. Raises Failure for a setting that is given twice."""
    if group == "":
        raise Failure("--group is empty; give the group a name")
    settings = key_values(config, "--config")
    for key, option, given in ((CONNECT, "--zookeeper", True), (GROUP, "--group", group is not None)):
        if given and key in settings:
            raise Failure(f"--config {key} and {option} set the same; give only one of them")
    return settings


def _streams(texts: list[str]) -> dict[str, int]:
    """`T[:STREAMS]` texts. Raises Failure."""
    streams: dict[str, int] = {}
    for text in texts:
        name, colon, count = text.partition(":")
        if not name or name in streams or (colon and not _is_count(count)):
            raise Failure(f"--topic {text}: write T or T:STREAMS with 1 to {STREAMS_LIMIT} streams, each topic once")
        streams[name] = int(count) if colon else 1
    return streams


def _filter(option: str, text: str | None) -> tuple[str, int]:
    """`REGEX[:STREAMS]`. A colon without a number after it belongs to the regex. Raises Failure."""
    regex, colon, count = (text or "").rpartition(":")
    if not colon or not (count.isascii() and count.isdigit()):
        return text or "", 1
    if not _is_count(count):
        raise Failure(f"{option} {text}: write REGEX or REGEX:STREAMS with 1 to {STREAMS_LIMIT} streams")
    return regex, int(count)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text[:9]) <= STREAMS_LIMIT


def _run(consumer: Consumer, lines: OwnershipLines) -> None:
    """Join; leave on the first signal. A second signal ends the command if the clean leave hangs. Raises Failure."""
    try:
        consumer.start()
        consumer.wait()
    except Interrupted:

        def leave_at_once(_number: int, _frame: FrameType | None) -> None:
            """For example on a ZooKeeper that is gone."""
            _say("left at once; the session ends by its timeout")
            raise SystemExit(UNKNOWN)

        before = {each: signal.signal(each, leave_at_once) for each in SIGNALS}
        if not lines.connected:
            with undisturbed():  # Python refuses to print from a handler that interrupts a print
                _say("waiting for ZooKeeper, to leave cleanly; Ctrl-C again leaves at once")
        try:
            with suppress(NotLeft):
                consumer.close(timeout_s=None)
            if not lines.connected:  # a session that is closed between two attempts to connect tells no server
                _say("left without a connection; the session ends by its timeout")
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    except REFUSALS as error:
        raise Failure(str(error)) from error
    finally:
        lines.in_doubt()  # if it could not give up its partitions
