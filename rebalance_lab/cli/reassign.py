"""`topics --reassign`: give partitions other replicas, take that back, or say what is under way (KIP-455)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from rebalance_lab.cli.failures import Failure
from rebalance_lab.cli.options import key_values
from rebalance_lab.cli.terminal import answer, print_json, table
from rebalance_lab.client.cluster import ClusterClient, RefusedByBroker
from rebalance_lab.client.retries import with_retries
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from rebalance_lab.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    OngoingPartitionReassignment,
)

ReassignOption = Annotated[
    str | None,
    typer.Option("--reassign", help="With --to: other replicas. Alone: what is under way.", metavar="TOPIC"),
]
ToOption = Annotated[
    list[str] | None,
    typer.Option("--to", help="With --reassign: the brokers of a partition.", metavar="PARTITION=BROKER,…"),
]
CancelOption = Annotated[bool, typer.Option("--cancel", help="With --reassign: take back what is under way.")]

#: Partition -> the brokers that it is to be on.
Targets = Mapping[int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Reassign:
    """`targets`: empty to take back, with `cancel`, or else to list what is under way."""

    topic: str
    targets: Targets
    cancel: bool = False

    async def work(self, client: ClusterClient, live: LiveKernel, timeout_ms: int, *, as_json: bool) -> None:
        """Raises RefusedByBroker, NoBroker and Failure."""
        under_way = await self._under_way(client, live, timeout_ms)
        if not self.targets and not self.cancel:
            _show(self.topic, under_way, as_json=as_json)
            return
        cancelled: Mapping[int, tuple[int, ...] | None] = {each.partition_index: None for each in under_way}
        targets = self.targets or cancelled
        if not targets:
            raise Failure(f"no partition of {self.topic} is being reassigned, so there is nothing to take back")
        await self._ask(client, timeout_ms, targets)
        if as_json:
            print_json({"cancelled" if self.cancel else "reassigned": self.topic, "partitions": sorted(targets)})
            return
        named = f"partition {min(targets)}" if len(targets) == 1 else f"{len(targets)} partitions"
        print(f"{named} of {self.topic}: {'taken back' if self.cancel else 'the reassignment has begun'}")

    async def _ask(self, client: ClusterClient, timeout_ms: int, targets: Mapping[int, Sequence[int] | None]) -> None:
        """Not repeated if nobody knows whether it has begun."""
        wanted = tuple(
            ReassignablePartition(partition_index=each, replicas=None if target is None else tuple(target))
            for each, target in sorted(targets.items())
        )
        topics = (ReassignableTopic(name=self.topic, partitions=wanted),)
        answered = await client.ask_controller(AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=topics))
        if answered.error_code:
            raise RefusedByBroker(answered.error_code, f"topic {self.topic}", answered.error_message)
        for topic in answered.responses:
            for each in topic.partitions:
                if each.error_code:
                    what = f"partition {each.partition_index} of {self.topic}"
                    raise RefusedByBroker(each.error_code, what, each.error_message)

    async def _under_way(
        self, client: ClusterClient, live: LiveKernel, timeout_ms: int
    ) -> list[OngoingPartitionReassignment]:
        async def ask() -> list[OngoingPartitionReassignment]:
            answered = await client.ask_controller(
                ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)
            )
            if answered.error_code:
                raise RefusedByBroker(answered.error_code, f"topic {self.topic}", answered.error_message)
            return [each for topic in answered.topics if topic.name == self.topic for each in topic.partitions]

        return await with_retries(live.kernel, ask, what="the cluster", timeout_ms=timeout_ms, repeatable=True)


def reassign_of(topic: str | None, to: Sequence[str] | None, *, cancel: bool) -> Reassign | None:
    """What the options ask for; None if they do not. Raises Failure for options that do not go together."""
    if topic is None:
        if to or cancel:
            raise Failure(f"{'--to' if to else '--cancel'} goes with --reassign")
        return None
    if to and cancel:
        raise Failure("--to and --cancel do not go together")
    return Reassign(topic, {_number(key): _brokers(key, text) for key, text in key_values(to, "--to").items()}, cancel)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 31:
        raise Failure(f"--to {text}=…: {text} is not the number of a partition")
    return int(text)


def _brokers(partition: str, text: str) -> tuple[int, ...]:
    ids = text.split(",")
    wrong = next((each for each in ids if not (each.isascii() and each.isdigit()) or int(each) >= 1 << 31), None)
    if wrong is not None:
        raise Failure(f"--to {partition}={text}: {wrong!r} is not the id of a broker; write 0=1,2")
    return tuple(map(int, ids))


def _show(topic: str, under_way: Sequence[OngoingPartitionReassignment], *, as_json: bool) -> None:
    rows = [
        {
            "partition": each.partition_index,
            "replicas": each.replicas,
            "adding": each.adding_replicas,
            "removing": each.removing_replicas,
        }
        for each in under_way
    ]
    if as_json:
        print_json({"topic": topic, "reassigning": rows})
    elif not rows:
        print(f"no partition of {topic} is being reassigned")
    else:
        columns = ("partition", "replicas", "adding", "removing")
        shown = [[_text(each[column]) for column in columns] for each in rows]
        answer().print(table(f"topic {topic}", columns, shown, numbers=("partition",)))


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
