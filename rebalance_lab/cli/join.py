"""`join`: one member of a group, in this process."""

from __future__ import annotations

import random
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from rebalance_lab.assignors import UnknownAssignor
from rebalance_lab.cli.failures import UNKNOWN, Failure, spoken
from rebalance_lab.cli.options import Rules, RulesOption, ZooKeeperOption, key_values
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.hosts.members import build_member, security_of, subscription_of
from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.errors import InvalidFilter, UnsupportedFilter
from rebalance_lab.world.live.connect_string import BadConnectString
from rebalance_lab.world.live.environment import live_environment, live_factory
from rebalance_lab.world.live.security import BadSecurity
from rebalance_lab.zkclient import ZkTimeoutException
from zkconsumer.errors import (
    ConsumerRebalanceFailedException,
    IllegalArgumentException,
    InvalidConfigException,
    NotSupported,
)

#: What a member refuses or gives up with, in words its user knows.
REFUSALS = (
    BadConnectString,
    BadSecurity,
    UnknownAssignor,
    IllegalArgumentException,
    InvalidConfigException,
    InvalidFilter,
    NotSupported,
    UnsupportedFilter,
    ConsumerRebalanceFailedException,
)

#: Settings that have an option of their own.
GROUP, CONNECT = "group.id", "zookeeper.connect"

#: Nobody wants as many; each is a name in a list that every member sorts.
STREAMS_LIMIT = 10_000


#: Events that people are told of on stderr; a warning brings its own words.
TOLD = {
    Kind.WARNED: "warning",
    Kind.EXPIRED: "the ZooKeeper session has ended: others may own these partitions already",
}


class OwnershipLines:
    """A sink that prints a line for each change of what the member owns.

    One rebalance takes and gives several partitions in one instant; `soon` puts the line off
    until they have all come, so that a line shows a whole set.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], object]) -> None:
        self._soon = soon
        self._owned: dict[tuple[str, int], None] = {}
        self._told: list[tuple[str, int]] = []
        self._last: Event | None = None
        self._waiting = False

    def write(self, event: Event) -> None:
        if event.kind in TOLD:
            print(f"rebalance-lab: {event.of('message') or TOLD[event.kind]}", file=sys.stderr, flush=True)
        if event.kind not in {Kind.OWNED, Kind.DISOWNED}:
            return
        assert event.topic is not None and event.partition is not None
        self._last = event
        if event.kind is Kind.OWNED:
            self._owned[event.topic, event.partition] = None
        else:
            self._owned.pop((event.topic, event.partition), None)
        if not self._waiting:
            self._waiting = True
            self._soon(self.tell)

    def tell(self) -> None:
        """Print what is owned now, if that is not what was printed last."""
        self._waiting = False
        owned = sorted(self._owned)
        if self._last is not None and owned != self._told:
            self._told = owned
            print_json({"at_us": self._last.at_us, "member": self._last.member, "owned": owned})


def join(
    *,
    zookeeper: ZooKeeperOption,
    group: Annotated[
        str | None,
        typer.Option("--group", help="The consumer group; as described there is a default one.", metavar="G"),
    ] = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="A topic, and its number of streams (1).", metavar="T[:STREAMS]")
    ] = None,
    whitelist: Annotated[
        str | None,
        typer.Option("--whitelist", help="Topics that match, and streams for all of them.", metavar="REGEX[:STREAMS]"),
    ] = None,
    blacklist: Annotated[
        str | None, typer.Option("--blacklist", help="Topics that do not match.", metavar="REGEX[:STREAMS]")
    ] = None,
    rules: RulesOption = Rules.described,
    assignor: Annotated[
        str | None, typer.Option("--assignor", help="range, roundrobin or ceil; else as the rule set has it.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", help="A setting of Kafka's 0.8 consumer, or a cure of the lab.", metavar="KEY=VALUE"),
    ] = None,
    security: Annotated[
        Path | None, typer.Option("--security", help="Digest, ACLs and TLS: see docs/containers.md.", metavar="FILE")
    ] = None,
) -> None:
    """Join a group as one ZooKeeper-era member, until SIGINT (Ctrl-C) or SIGTERM.

    Prints a JSON line for each change of what the member owns.
    """
    if [bool(topic), whitelist is not None, blacklist is not None].count(True) != 1:
        raise Failure("say what to consume: --topic, as often as you like, or --whitelist, or --blacklist")
    regex, streams = _filter("--blacklist" if whitelist is None else "--whitelist", whitelist or blacklist)
    spec = MemberSpec(
        actor="join",
        host=socket.gethostname(),
        seed=random.randrange(2**63),
        rules=rules,
        assignor=assignor,
        properties=_properties(zookeeper, group, config),
        streams=_streams(topic or []),
        whitelist=regex if whitelist is not None else None,
        blacklist=regex if blacklist is not None else None,
        filter_streams=streams,
        work_period_ms=50,
        plant=None,
        events="",
        security=None if security is None else str(security),
    )
    with spoken():
        _run(spec)


def _properties(zookeeper: str, group: str | None, config: list[str] | None) -> dict[str, str]:
    """The settings. Raises Failure for one that is given in two ways."""
    if group == "":
        raise Failure("--group is empty; give the group a name")
    options = {CONNECT: zookeeper} if group is None else {CONNECT: zookeeper, GROUP: group}
    settings = key_values(config, "--config")
    for key, option in ((CONNECT, "--zookeeper"), (GROUP, "--group")):
        if key in options and key in settings:
            raise Failure(f"--config {key} and {option} say the same; give one of them")
    return {**options, **settings}


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
    """`REGEX[:STREAMS]`. A colon that no number follows belongs to the regex. Raises Failure."""
    regex, colon, count = (text or "").rpartition(":")
    if not colon or not (count.isascii() and count.isdigit()):
        return text or "", 1
    if not _is_count(count):
        raise Failure(f"{option} {text}: write REGEX or REGEX:STREAMS with 1 to {STREAMS_LIMIT} streams")
    return regex, int(count)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text[:9]) <= STREAMS_LIMIT


def _run(spec: MemberSpec) -> None:
    with LiveKernel() as live:
        lines = OwnershipLines(live.loop.call_soon)
        closing = live.kernel.flag("asked to leave")

        def leave() -> None:
            if closing.raised:  # asked twice: the clean leave hangs, for example on a ZooKeeper that is gone
                print("rebalance-lab: left at once; the session ends by its timeout", file=sys.stderr)
                raise SystemExit(UNKNOWN)
            closing.raise_()

        for number in (signal.SIGINT, signal.SIGTERM):
            live.loop.add_signal_handler(number, leave)
        try:
            factory = live_factory(spec.actor, live, spec.seed, security_of(spec))
            environment = live_environment(spec.actor, live, lines, spec.seed, host=spec.host, factory=factory)
            member = build_member(environment, spec)
            subscription = subscription_of(spec)
            print(f"rebalance-lab: joining as {member.consumer_id}; Ctrl-C leaves", file=sys.stderr)
            live.run(member.run(subscription, closing), "member")
        except ZkTimeoutException as error:
            raise Failure(f"no ZooKeeper answers at {spec.properties[CONNECT]}: {error} ms") from error
        except REFUSALS as error:
            raise Failure(str(error)) from error
        finally:
            lines.tell()
