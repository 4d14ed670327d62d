"""A broker's controller: it stands for election, and takes questions while it reigns.

As `kafka.controller.KafkaController` of Kafka 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from controller.cluster import Assignment, Stored
from controller.election import ControllerMoved, Elected, depose, elect
from controller.machine import ControllerMachine
from controller.refusals import NotElected, Rejected
from controller.reign import Channels, Knows, Reign
from controller.settings import ControllerBug, ControllerSettings, Imbalance
from controller.stimuli import (
    ElectionAsked,
    ImbalanceDue,
    IsrAsked,
    IsrWanted,
    ReassignmentAsked,
    ReassignmentsListed,
    SettingsChanged,
    ShutdownAsked,
    Stimulus,
)
from rebalance_lab.assignors import TopicPartition
from rebalance_lab.kernel import Cancelled, Future, Kernel, Scope
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.paths import CONTROLLER
from rebalance_lab.world.errors import BadVersion, NoNode, SessionClosed, SessionExpired
from rebalance_lab.world.ports import Delete, WatchKind
from rebalance_lab.zkclient.pipelined import PipelinedClient

T = TypeVar("T")

#: What came of an AlterPartition request: its error, and the state or the error of each partition.
IsrAnswer = tuple[ErrorCode, Mapping[TopicPartition, Stored | ErrorCode]]

#: What came of a ControlledShutdown request: its error, and the partitions that the broker still leads.
ShutdownAnswer = tuple[ErrorCode, Sequence[TopicPartition]]

#: What came of an ElectLeaders request: the leader of each partition, or why it was not elected.
ElectionAnswer = Mapping[TopicPartition, int | NotElected]

#: What came of an AlterPartitionReassignments request: why partitions are not reassigned; None for those that are.
ReassignmentAnswer = Mapping[TopicPartition, Rejected | None]

#: A controller looks for imbalance so long after its election, then at its interval (`onControllerFailover`).
FIRST_IMBALANCE_MS = 5_000

#: How long a controller that has failed stays before it lets another be elected.
FAILURE_PAUSE_MS = 1_000


class Controller:
    """One broker's controller on one session; with a RenewedClient, on one after another. `run` ends only with an
    error: SessionExpired, if the client raises it, and SessionClosed.

    `knows(epoch, partition, state)`: is called with what this controller takes for the state of a partition from then
    on. `channels`: makes the way to the brokers for one reign, in a scope that ends with it. `report(event, detail)`:
    is called when a reign begins and ends, and with what a person should know.
    """

    def __init__(
        self,
        tasks: Kernel,
        client: PipelinedClient,
        broker_id: int,
        settings: ControllerSettings,
        *,
        wall_ms: Callable[[], int],
        channels: Callable[[Scope], Channels],
        report: Callable[[str, dict[str, object]], None],
        knows: Knows | None = None,
    ) -> None:
        self._tasks = tasks
        self._client = client
        self._broker_id = broker_id
        self._settings = settings
        self._wall_ms = wall_ms
        self._channels = channels
        self._report = report
        self._knows = knows
        self._reigning: Reign | None = None
        self._over: Future[None] = Future("the end of a reign")
        self._unanswered: dict[Future[Any], Any] = {}  # and what each is answered when the reign ends

    def settings_changed(self, topics: Collection[str]) -> None:
        """The settings of these topics have changed. Nothing happens unless this controller reigns."""
        if self._reigning is not None:
            self._reigning.put(SettingsChanged(topics))

    def reelect(self, why: str) -> None:
        """Resign, and stand for election again. `/controller` stays: what Kafka does with an expired session, which has
        none any more. In a session that goes on, nobody can be elected after that (KAFKA-13461)."""
        if self._reigning is not None:
            self._reigning.end(why)

    async def resigned(self) -> None:
        """Done when this controller does not reign."""
        if self._reigning is not None:
            await self._over

    def ask_isr(
        self, broker_id: int, broker_epoch: int, wanted: Mapping[TopicPartition, IsrWanted]
    ) -> Future[IsrAnswer]:
        """Ask for other ISRs, as a leader. NOT_CONTROLLER if this controller does not reign, or ends first."""

        def asked(answer: Callable[[IsrAnswer], None]) -> Stimulus:
            return IsrAsked(broker_id, broker_epoch, wanted, lambda error, results: answer((error, results)))

        return self._ask("the controller's answer to a leader", asked, (ErrorCode.NOT_CONTROLLER, {}))

    def ask_shutdown(self, broker_id: int, broker_epoch: int) -> Future[ShutdownAnswer]:
        """Ask to shut down, as a broker. STALE_CONTROLLER_EPOCH if this controller does not reign, or ends first."""
        deposed: ShutdownAnswer = (ErrorCode.STALE_CONTROLLER_EPOCH, ())

        def asked(answer: Callable[[ShutdownAnswer], None]) -> Stimulus:
            return ShutdownAsked(broker_id, broker_epoch, lambda error, remaining: answer((error, remaining)))

        return self._ask("the controller's answer to a broker that shuts down", asked, deposed)

    def ask_election(self, partitions: Collection[TopicPartition], *, unclean: bool) -> Future[ElectionAnswer]:
        """Ask for leaders, as a client. NOT_CONTROLLER for each if this controller does not reign, or ends first."""
        deposed: ElectionAnswer = {each: NotElected(ErrorCode.NOT_CONTROLLER, None) for each in partitions}
        return self._ask(
            "the controller's answer to a client that asks for leaders",
            lambda answer: ElectionAsked(partitions, unclean, answer),
            deposed,
        )

    def ask_reassignment(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Future[ReassignmentAnswer | None]:
        """Ask for other replicas, as a client. None if this controller does not reign, or ends first."""
        return self._ask(
            "the controller's answer to a client that asks for other replicas",
            lambda answer: ReassignmentAsked(targets, answer),
            None,
        )

    def list_reassignments(
        self, partitions: Collection[TopicPartition] | None
    ) -> Future[Mapping[TopicPartition, Assignment] | None]:
        """Ask what is being reassigned, as a client. None if this controller does not reign, or ends first."""
        return self._ask(
            "the controller's answer to a client that asks what is being reassigned",
            lambda answer: ReassignmentsListed(partitions, answer),
            None,
        )

    def _ask(self, what: str, asked: Callable[[Callable[[T], None]], Stimulus], deposed: T) -> Future[T]:
        """Put a stimulus that is answered. `deposed`: the answer if this controller does not reign, or ends first."""
        future: Future[T] = Future(what)
        if self._reigning is None:
            future.set(deposed)
            return future

        def answer(found: T) -> None:
            self._unanswered.pop(future, None)
            future.set(found)

        self._unanswered[future] = deposed
        self._reigning.put(asked(answer))
        return future

    async def run(self) -> None:
        """Stand for election whenever there is no controller."""
        was_told = False
        while True:
            there = await self._client.ask(lambda session: session.exists(CONTROLLER, watch=True))
            if there.value is not None:
                assert there.watch is not None
                if was_told and self._settings.bug is ControllerBug.WATCHES_ONCE:
                    await Future("a notification that it does not ask for")
                try:
                    was_told = (await there.watch).kind is WatchKind.DELETED or was_told
                except SessionExpired:
                    if not self._settings.form.outlives_sessions:
                        raise
                continue
            try:
                elected = await self._elect()
            except ControllerMoved:
                continue
            except KafkaException as error:
                self._report("log", {"message": f"no controller can be elected: {error}"})
                await self._tasks.sleep(FAILURE_PAUSE_MS * 1000)
                continue
            try:
                await self._reign(elected)
            except ControllerMoved as moved:
                self._report("resigned", {"why": str(moved)})
            except (Cancelled, SessionExpired, SessionClosed):
                raise
            except Exception as error:  # the original resigns if it fails to load the cluster, and later only logs it
                self._report("resigned", {"why": f"{type(error).__name__}: {error}"})
                await self._step_down(elected)

    async def _elect(self) -> Elected:
        """Raises ControllerMoved, and KafkaException for an epoch that is not a number."""
        settings, timestamp_ms = self._settings, self._wall_ms()
        found = await elect(
            self._client,
            self._broker_id,
            timestamp_ms=timestamp_ms,
            form=settings.form,
            bug=settings.bug,
            reads_back=settings.election_read_back,
        )
        return found if settings.fences_writes else replace(found, version=None)

    async def _step_down(self, elected: Elected) -> None:
        """Leave `/controller` to others, after a pause: what has failed may fail again. Without a fence it may be
        another's by then."""
        await self._tasks.sleep(FAILURE_PAUSE_MS * 1000)
        if elected.fence is None or self._settings.bug is ControllerBug.DEPOSES:
            await depose(self._client)
            return
        with suppress(BadVersion, NoNode):  # another has been elected already
            await self._client.fenced(elected.fence, [Delete(CONTROLLER)])

    async def _reign(self, elected: Elected) -> None:
        """Raises ControllerMoved."""
        self._report("elected", {"epoch": elected.epoch})
        machine = ControllerMachine(self._broker_id, elected.epoch, self._settings)
        async with self._tasks.scope(f"reign {elected.epoch}") as scope:
            self._over = Future("the end of a reign")
            self._reigning = Reign(
                self._client,
                elected,
                machine,
                self._channels(scope),
                self._report,
                self._knows,
                self._settings,
            )
            if self._settings.lists_early:
                scope.spawn(self._reigning.list_early(), "lists of children")
            imbalance = self._settings.imbalance
            if imbalance is not None:
                scope.spawn(self._look_for_imbalance(self._reigning, imbalance), "imbalance of leaders")
            try:
                await self._reigning.run()
            finally:
                self._reigning = None
                self._over.set(None)
                unanswered, self._unanswered = self._unanswered, {}
                for future, deposed in unanswered.items():
                    future.set(deposed)

    async def _look_for_imbalance(self, reign: Reign, imbalance: Imbalance) -> None:
        await self._tasks.sleep(FIRST_IMBALANCE_MS * 1000)
        while True:
            reign.put(ImbalanceDue())
            await self._tasks.sleep(imbalance.interval_ms * 1000)
