"""`join`: one member of a group, in this process."""

from __future__ import annotations

import random
import signal
import socket
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from rebalance_lab.assignors import UnknownAssignor
from rebalance_lab.cli.failures import UNKNOWN, Failure, spoken
from rebalance_lab.cli.options import Rules, RulesOption, ZooKeeperOption, key_values
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.history.events import Event, Kind
from rebalance_lab.hosts.members import build_member
from rebalance_lab.hosts.spec import MemberSpec
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.connect_string import BadConnectString
from rebalance_lab.world.live.environment import live_environment
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
    UnknownAssignor,
    IllegalArgumentException,
    InvalidConfigException,
    NotSupported,
    ZkTimeoutException,
    ConsumerRebalanceFailedException,
)


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
    group: Annotated[str, typer.Option("--group", help="The consumer group.", metavar="G")],
    topic: Annotated[
        list[str], typer.Option("--topic", help="A topic, and its number of streams (1).", metavar="T[:STREAMS]")
    ],
    rules: RulesOption = Rules.described,
    assignor: Annotated[
        str | None, typer.Option("--assignor", help="range, roundrobin or ceil; else as the rule set has it.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", help="A setting of Kafka's 0.8 consumer.", metavar="KEY=VALUE")
    ] = None,
) -> None:
    """Join a group as one ZooKeeper-era member, until SIGINT (Ctrl-C) or SIGTERM.

    Prints a JSON line for each change of what the member owns.
    """
    if not group:
        raise Failure("--group is empty; give the group a name")
    properties = {"group.id": group, "zookeeper.connect": zookeeper, **key_values(config, "--config")}
    spec = MemberSpec(
        actor="join",
        host=socket.gethostname(),
        seed=random.randrange(2**63),
        rules=rules,
        assignor=assignor,
        properties=properties,
        streams=_streams(topic),
        work_period_ms=50,
        plant=None,
        events="",
    )
    with spoken():
        _run(spec)


def _streams(texts: list[str]) -> dict[str, int]:
    """`T[:STREAMS]` texts. Raises Failure."""
    streams: dict[str, int] = {}
    for text in texts:
        name, colon, count = text.partition(":")
        if not name or name in streams or (colon and not (count.isascii() and count.isdigit() and int(count) > 0)):
            raise Failure(f"--topic {text}: write T or T:STREAMS with 1 stream or more, each topic once")
        streams[name] = int(count) if colon else 1
    return streams


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
            environment = live_environment(spec.actor, live, lines, spec.seed, host=spec.host)
            member = build_member(environment, spec)
            print(f"rebalance-lab: joining group {spec.properties['group.id']}; Ctrl-C leaves", file=sys.stderr)
            live.run(member.run(spec.streams, closing), "member")
        except REFUSALS as error:
            raise Failure(str(error)) from error
        finally:
            lines.tell()
