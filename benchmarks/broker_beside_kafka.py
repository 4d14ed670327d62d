"""The lab's broker beside Kafka 3.9.1: the same loop of confluent-kafka produces to both and fetches from both.

Run: python benchmarks/broker_beside_kafka.py [--runs 7] [--json]

One broker of each kind runs on one ZooKeeper; topics have one partition, and a record's value has 1,000 bytes. In each
run each broker takes each step; they take turns in going first, and one more run before them is not counted. The steps:

- produce, one at a time: 200 batches with acks=all, each sent when the one before was acknowledged; the median of them;
- produce, in flight: 100 batches with acks=all, five requests in flight at most; from the first until all are
  acknowledged; the median of five times;
- to the consumer: 100 batches of one record, each sent when the one before has come back from a long poll; the median;
- fetch: a new consumer reads a partition of 2,000 or 20,000 records from its beginning.

`processor`: what the broker's process spent on a step, for each batch. Exit code 1 if the lab takes more than ten times
as long as Kafka in some step, by the median of the runs' ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from rebalance_lab.cli.cluster import BrokerProcess
from rebalance_lab.testing.ensemble import wait_until
from rebalance_lab.wire.payloads import read_broker
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

LAB, KAFKA = "lab", "kafka"
ALLOWED = 10.0

VALUE = bytes(range(250)) * 4
LIMIT_S = 60

#: Sent and acknowledged one after another.
SINGLE = 200
#: Sent at once, as often as this.
AT_ONCE, REPEATS = 100, 5
THERE_AND_BACK = 100
#: Records in each batch -> batches of the partition that is read.
READ = {1: 2_000, 100: 200}

#: The JVM of `KafkaBroker` is made to start fast. Here it may compile as it does in production.
JAVA_OPTIONS = {"_JAVA_OPTIONS": "-XX:TieredStopAtLevel=4"}
KAFKA_ROOT = "/kafka"


class NotMeasured(Exception):
    """A broker did not do what was to be timed."""


@dataclass(frozen=True)
class Server:
    """A running broker."""

    bootstrap: str
    pid: int

    def processor_ms(self) -> float:
        """What its process has spent so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@dataclass
class Measured:
    """Of one step on one broker, a value for each run; `processor_ms` of one batch."""

    ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Step:
    """`ms`: measures it on a broker. `batches`: that a broker handles meanwhile."""

    name: str
    ms: Callable[[Server], float]
    batches: int


# -- clients --------------------------------------------------------------------------------------


def settings(server: Server, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": server.bootstrap, "socket.nagle.disable": True, **more}


class Sender:
    """A producer of batches with so many records each. Its first batch is sent at once, so that it is connected."""

    def __init__(self, server: Server, topic: str, records: int, *, idempotent: bool = False) -> None:
        self._topic = topic
        self._records = records
        self._missing = 0
        self._failed: list[KafkaError] = []
        self._producer = Producer(
            settings(
                server,
                acks="all",
                **{
                    "enable.idempotence": idempotent,
                    "max.in.flight.requests.per.connection": 5,
                    "batch.num.messages": records,
                    "linger.ms": 0 if records == 1 else 1000,  # a full batch goes at once
                    "batch.size": 1_000_000,
                },
            )
        )
        self.send(1)

    def send(self, batches: int) -> float:
        """Send so many, and wait until all are acknowledged. Seconds it took."""
        began = time.perf_counter()
        self._missing = batches * self._records
        for _ in range(batches * self._records):
            self._producer.produce(self._topic, VALUE, partition=0, on_delivery=self._done)
        while self._missing:
            if not self._producer.poll(LIMIT_S):
                raise NotMeasured(f"{self._missing} records are not acknowledged after {LIMIT_S} s")
        took = time.perf_counter() - began
        if self._failed:
            raise NotMeasured(f"{len(self._failed)} records were refused: {self._failed[0]}")
        return took

    def _done(self, error: KafkaError | None, _: Message) -> None:
        self._missing -= 1
        if error is not None:
            self._failed.append(error)


@contextmanager
def consumer_of(server: Server, topic: str, offset: int) -> Iterator[Consumer]:
    consumer = Consumer(settings(server, **{"group.id": "none", "enable.auto.commit": False}))
    try:
        consumer.list_topics(topic, LIMIT_S)  # it is connected then
        consumer.assign([TopicPartition(topic, 0, offset)])
        yield consumer
    finally:
        consumer.close()


def taken(messages: list[Message]) -> int:
    for each in messages:
        if each.error() is not None or each.value() != VALUE:
            raise NotMeasured(f"a consumer got {each.error() or 'other bytes than were sent'}")
    return len(messages)


# -- steps ----------------------------------------------------------------------------------------


def produce_one_at_a_time(records: int, idempotent: bool, server: Server) -> float:
    sender = Sender(server, f"single-{records}", records, idempotent=idempotent)
    return statistics.median(sender.send(1) for _ in range(SINGLE)) * 1000


def produce_in_flight(records: int, idempotent: bool, server: Server) -> float:
    sender = Sender(server, f"flight-{records}", records, idempotent=idempotent)
    return statistics.median(sender.send(AT_ONCE) for _ in range(REPEATS)) * 1000


def to_the_consumer(server: Server) -> float:
    topic, seconds = "back", []
    sender = Sender(server, topic, 1)
    with consumer_of(server, topic, confluent_kafka.OFFSET_END) as consumer:
        consumer.poll(1.0)  # until it waits at the end
        for _ in range(THERE_AND_BACK):
            began = time.perf_counter()
            sender.send(1)
            if taken(consumer.consume(1, LIMIT_S)) != 1:
                raise NotMeasured("a record does not come back")
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds) * 1000


def fetch(records: int, server: Server) -> float:
    missing = READ[records] * records
    with consumer_of(server, f"read-{records}", OFFSET_BEGINNING) as consumer:
        began = time.perf_counter()
        give_up = began + LIMIT_S
        while missing:
            missing -= taken(consumer.consume(min(missing, 1000), 1.0))
            if time.perf_counter() > give_up:
                raise NotMeasured(f"{missing} records cannot be fetched in {LIMIT_S} s")
        return (time.perf_counter() - began) * 1000


def steps() -> Iterator[Step]:
    for records in READ:
        for idempotent in (False, True):
            what = f"{records} x 1 KB{', idempotent' if idempotent else ''}"
            one, many = (
                partial(produce_one_at_a_time, records, idempotent),
                partial(produce_in_flight, records, idempotent),
            )
            yield Step(f"produce, one at a time: {what}", one, SINGLE + 1)
            yield Step(f"produce, {AT_ONCE} in flight: {what}", many, AT_ONCE * REPEATS + 1)
    yield Step("to the consumer: 1 x 1 KB", to_the_consumer, THERE_AND_BACK + 1)
    for records, batches in READ.items():
        yield Step(f"fetch {batches:,} batches: {records} x 1 KB", partial(fetch, records), batches)


# -- brokers --------------------------------------------------------------------------------------


@contextmanager
def both(folder: Path) -> Iterator[dict[str, Server]]:
    """A broker of each kind, on one ZooKeeper."""
    with ExitStack() as stack:
        zookeeper = stack.enter_context(EmbeddedZooKeeper.start(folder / "zookeeper"))
        ours = BrokerProcess(1, zookeeper.connect_string, folder)
        stack.callback(ours.stop)
        ours.launch()
        os.environ.update(JAVA_OPTIONS)
        theirs = KafkaBroker(0, zookeeper.connect_string + KAFKA_ROOT, folder / "kafka")
        stack.callback(theirs.kill)
        theirs.wait_until_started()
        session = KazooClient(zookeeper.connect_string)
        session.start()
        stack.callback(session.stop)
        found = read_broker(0, session.get(f"{KAFKA_ROOT}/brokers/ids/0")[0])
        wait_until(lambda: ours.bootstrap() is not None, "the lab's broker to serve")
        yield {
            LAB: Server(str(ours.bootstrap()), ours.pid),
            KAFKA: Server(f"{found.host}:{found.port}", theirs.pid),
        }


def prepare(server: Server) -> None:
    """Create the topics, and fill those that are read."""
    # A client that asks before there is a controller asks again after minutes only, so each look-up has a new one.
    wait_until(lambda: AdminClient(settings(server)).list_topics(timeout=LIMIT_S).controller_id >= 0, "a controller")
    admin = AdminClient(settings(server))
    names = [f"{each}-{records}" for each in ("single", "flight", "read") for records in READ]
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in (*names, "back")]).values():
        created.result(LIMIT_S)
    for records, batches in READ.items():
        Sender(server, f"read-{records}", records).send(batches - 1)


def measure(runs: int, several: list[Step]) -> dict[str, dict[str, Measured]]:
    """Step -> broker -> what was measured."""
    found = {step.name: {LAB: Measured(), KAFKA: Measured()} for step in several}
    with tempfile.TemporaryDirectory(prefix="broker-beside-kafka-") as folder, both(Path(folder)) as servers:
        for server in servers.values():
            prepare(server)
        for run in range(runs + 1):
            print(f"run {run} of {runs}" if run else "warming up", file=sys.stderr)
            for step in several:
                for name in sorted(servers, reverse=run % 2 == 0):
                    before = servers[name].processor_ms()
                    ms = step.ms(servers[name])
                    if run:
                        found[step.name][name].ms.append(ms)
                        spent = servers[name].processor_ms() - before
                        found[step.name][name].processor_ms.append(spent / step.batches)
    return found


# -- results --------------------------------------------------------------------------------------


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):,.2f} ({min(values):,.2f} to {max(values):,.2f})"


def ratios(found: dict[str, Measured]) -> list[float]:
    """The lab's time by Kafka's, of each run."""
    return [ours / theirs for ours, theirs in zip(found[LAB].ms, found[KAFKA].ms, strict=True)]


def show(results: dict[str, dict[str, Measured]]) -> None:
    print("| step | the lab, ms | Kafka 3.9.1, ms | the lab / Kafka | processor of a batch, ms | Kafka's |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, found in results.items():
        processor = [f"{statistics.median(found[each].processor_ms):.2f}" for each in (LAB, KAFKA)]
        by = ratios(found)
        ratio = f"**{statistics.median(by):.1f}** ({min(by):.1f} to {max(by):.1f})"
        cells = [name, spread(found[LAB].ms), spread(found[KAFKA].ms), ratio, *processor]
        print(f"| {' | '.join(cells)} |")


def report(results: dict[str, dict[str, Measured]]) -> dict[str, Any]:
    """The same as data."""
    machine = {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "librdkafka": confluent_kafka.libversion()[0],
    }
    rows = {
        step: {broker: {"ms": each.ms, "processor_ms": each.processor_ms} for broker, each in found.items()}
        for step, found in results.items()
    }
    return {"machine": machine, "steps": rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="only steps whose name has this")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("there is at least one run")
    results = measure(options.runs, [step for step in steps() if options.only in step.name])
    if options.json:
        print(json.dumps(report(results)))
    else:
        show(results)
    slow = [name for name, found in results.items() if statistics.median(ratios(found)) > ALLOWED]
    for name in slow:
        print(f"more than {ALLOWED:g} times as slow as Kafka: {name}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
