"""The role of a client that others wrote: an idempotent producer with acks=all, which writes numbered records for some
time, and reads the whole partition in the end.

It records what `roles.log_client` records. There are differences: many writes are under way at once; the library
repeats a write by itself, so each number has one INVOKED; INFO means that it has given up; an OK may name no offset
(a broker that recognizes a repeated batch need not know it).

A consumer that begins to read asks any broker who leads. One that was paused, and does not know yet that it has been
replaced, names itself, and its log ends where its leadership did. So a read that ends before what is acknowledged is
done again for a while (`STALE_US`) before it counts.
"""

from __future__ import annotations

from functools import partial

from rebalance_lab.history.events import Kind, Layer
from rebalance_lab.history.writes import CONSUME, PRODUCE
from rebalance_lab.kernel import Flag, Future
from rebalance_lab.roles.registered import RegisteredBrokers
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.roles.values import told, value_of
from rebalance_lab.world.outside.client import OutsideClient, OutsideError, OutsideSettings, library
from rebalance_lab.world.ports import Environment

RETRY_US = 100_000

#: For how long a read may be one of a leader that has been replaced: longer than a broker needs to hear of it.
STALE_US = 10_000_000

PARTITION = 0

#: Writes that are under way at once; more wait until one has ended.
MOST_UNDER_WAY = 1000


class OutsideClientSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """`library`: one of `world.outside.client.LIBRARIES`. `duration_ms`: how long it writes, from its first
    acknowledgement on. `pause_us`: between two writes. `acks`: -1, or 1 for a producer that only claims acks=all."""

    connect: str
    session_timeout_ms: int
    topic: str
    library: str
    duration_ms: int
    pause_us: int
    value_bytes: int
    request_timeout_ms: int
    acks: int = -1


async def run(environment: Environment, spec: OutsideClientSpec, closing: Flag) -> None:
    registered = RegisteredBrokers(environment, spec.connect, spec.session_timeout_ms)
    async with environment.tasks.scope("client") as scope:
        scope.spawn(_Client(environment, spec).work(registered), "work")
        await closing.wait()
        scope.cancel("asked to leave")
    await registered.close()


class _Client:
    def __init__(self, environment: Environment, spec: OutsideClientSpec) -> None:
        self._environment = environment
        self._spec = spec
        self._tasks = environment.tasks
        self._under_way = 0
        self._changed = environment.tasks.flag("a write has ended")
        self._first_us: int | None = None
        self._acknowledged_end = 0
        self._first_stale_us: int | None = None

    async def work(self, registered: RegisteredBrokers) -> None:
        brokers = await registered.addresses()
        settings = OutsideSettings(
            bootstrap=tuple(str(each) for each in brokers.values()),
            topic=self._spec.topic,
            partition=PARTITION,
            request_timeout_ms=self._spec.request_timeout_ms,
            acks=self._spec.acks,
        )
        client = OutsideClient(self._tasks, partial(library, self._spec.library, settings))
        number = 0
        while self._first_us is None or self._tasks.now_us() < self._first_us + self._spec.duration_ms * 1000:
            number += 1
            await self._until(MOST_UNDER_WAY - 1)
            self._write(client, number)
            await self._tasks.sleep(self._spec.pause_us)
        await self._until(0)
        while not await self._read(client):
            await self._tasks.sleep(RETRY_US)
        await client.close()

    async def _until(self, most: int) -> None:
        """Wait until so many writes are under way at most."""
        while self._under_way > most:
            self._changed.clear()
            await self._changed.wait()

    def _write(self, client: OutsideClient, number: int) -> None:
        began = self._emit(Kind.INVOKED, op=PRODUCE, number=number)
        self._under_way += 1

        def ended(done: Future[int | None]) -> None:
            self._under_way -= 1
            try:
                offset = done.result()
            except OutsideError as error:
                self._emit(Kind.INFO, op=PRODUCE, of=began, number=number, error=str(error))
            else:
                self._first_us = self._first_us or self._tasks.now_us()
                self._acknowledged_end = max(self._acknowledged_end, -1 if offset is None else offset + 1)
                self._emit(Kind.OK, op=PRODUCE, of=began, number=number, offset=offset)
            self._changed.raise_()

        client.send(value_of(number, self._spec.value_bytes)).on(ended)

    async def _read(self, client: OutsideClient) -> bool:
        """Whether the whole partition was read."""
        began = self._emit(Kind.INVOKED, op=CONSUME)
        try:
            found = await client.read()
            self._check_end(found[-1][0] + 1 if found else 0)
        except OutsideError as error:
            self._emit(Kind.FAILED_OP, op=CONSUME, of=began, error=str(error))
            return False
        records = [(offset, told(value)) for offset, value in found]
        self._emit(Kind.OK, op=CONSUME, of=began, records=records)
        return True

    def _check_end(self, end: int) -> None:
        """Raises OutsideError if a read may be one of a leader that has been replaced."""
        if end >= self._acknowledged_end:
            return
        now_us = self._tasks.now_us()
        if self._first_stale_us is None:
            self._first_stale_us = now_us
        if now_us < self._first_stale_us + STALE_US:
            raise OutsideError(f"the log ended at {end}, and up to {self._acknowledged_end} all is acknowledged")

    def _emit(self, kind: Kind, **detail: object) -> int:
        """Record an event. Returns its number."""
        spec = self._spec
        event = self._environment.recorder.emit(
            Layer.OP, kind, member=spec.actor, topic=spec.topic, partition=PARTITION, detail=detail
        )
        return event[1]


ROLE = Role("outside client", OutsideClientSpec, run)
