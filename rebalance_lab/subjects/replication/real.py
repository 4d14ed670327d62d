"""Brokers of Kafka in place of ours, as the runner sees them: JVMs whose logs become event files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rebalance_lab.broker.replication.rules import IsrWriter
from rebalance_lab.broker.settings import BROKER_SETTINGS, kafka_properties
from rebalance_lab.history.events import Event
from rebalance_lab.history.recorder import FileSink
from rebalance_lab.kernel import Kernel
from rebalance_lab.roles.broker import BrokerPlant, BrokerSpec
from rebalance_lab.roles.real.broker_log_reader import LEVELS, BrokerLogReader
from rebalance_lab.roles.spec import Command, Expire, NodeSpec
from rebalance_lab.trials.plan import Plan, PlanError
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.programs import ProgramProcess
from rebalance_lab.world.kafka.broker import KafkaBroker
from rebalance_lab.world.kafka.log_file import LogFile
from rebalance_lab.world.live.takeover import Credentials, TakeoverFailed, end_session, password_of
from rebalance_lab.world.process.clocks import identity

#: The least replica.lag.time.max.ms with which a broker of Kafka starts (`KafkaConfig.validateValues`, 3.9.1).
LEAST_LAG = "replica.fetch.wait.max.ms"


def demands(plan: Plan) -> None:
    """Refuse what a broker of Kafka 3.9.1 does not do. Raises PlanError."""
    if not plan.has_real_nodes:
        return
    if plan.plant in tuple(BrokerPlant):
        raise PlanError(f"plant {plan.plant} is a bug of our brokers; real brokers do not have it")
    if plan.number("lag_messages"):
        raise PlanError(f"lag_messages={plan.number('lag_messages')}: Kafka 3.9.1 does not have this setting")
    if plan.text("isr_writer") != IsrWriter.CONTROLLER:
        raise PlanError(f"isr_writer={plan.text('isr_writer')}: in Kafka 3.9.1 the controller writes another ISR")
    lag_ms, least_ms = plan.number("lag_ms"), BROKER_SETTINGS[LEAST_LAG].default
    if lag_ms < least_ms:  # type: ignore[operator]
        raise PlanError(
            f"lag_ms={lag_ms}: must be at least {least_ms} with real brokers, their {LEAST_LAG}; Kafka does not start"
        )


class RealBroker(ProgramProcess):
    """One broker of Kafka: its process, and the events that are read from its growing log
    (`trials.stages.processes.nodes.EventSource`)."""

    def __init__(self, spec: BrokerSpec, folder: Path, *, wall_offset_us: int) -> None:
        settings = spec.settings
        self._connect = settings.connect
        self._session_timeout_ms = settings.session_timeout_ms
        self._broker = KafkaBroker(
            settings.config.broker_id,
            settings.connect,
            folder,
            session_timeout_ms=settings.session_timeout_ms,
            port=settings.port,
            data_dir=spec.files,
            settings=kafka_properties(settings.log_defaults, settings.config, settings),
            loggers=LEVELS,
        )
        super().__init__(spec.actor, "a broker of Kafka", self._broker)
        self._file = LogFile(self._broker.log_file)
        self._sink = FileSink(Path(spec.events))
        self._reader = BrokerLogReader(spec.actor, self._sink, wall_offset_us=wall_offset_us)
        self._begun()

    def _begun(self) -> None:
        self._reader.process_started({**identity(), "pid": self._broker.pid}, time.time_ns() // 1_000_000)

    # -- its process -------------------------------------------------------------------------

    def start_again(self) -> None:
        """Start it after its end, with its data. Raises TrialError."""
        self._read()  # all that its last life has logged
        super().start_again()
        self._begun()

    def tell(self, command: Command) -> None:
        """End its session, for `Expire`. Raises TrialError for any other command."""
        if not isinstance(command, Expire):
            super().tell(command)
        session_id = self._reader.writer.session
        if session_id is None:
            raise TrialError(f"{self.actor} has no session that could be ended")
        host, _, port = self._connect.partition("/")[0].split(",")[0].rpartition(":")
        credentials = Credentials(host, int(port), session_id, password_of(session_id), self._session_timeout_ms)
        try:
            end_session(credentials)
        except (TakeoverFailed, OSError) as error:
            raise TrialError(f"the session of {self.actor} could not be ended: {error}") from error

    # -- its events --------------------------------------------------------------------------

    def _read(self) -> None:
        for line in self._file.poll():
            self._reader.feed(line)

    def poll(self) -> list[Event]:
        """The events of what was logged since the last call."""
        self._read()
        return self._reader.take()

    def close(self) -> None:
        self._sink.close()


class RealBrokers:
    """The brokers of Kafka of one live trial (`trials.subject.Outsiders`)."""

    def __init__(self, plan: Plan, folder: Path, _kernel: Kernel) -> None:
        self._plan = plan
        self._folder = folder / "kafka"

    def start(
        self, spec: NodeSpec, *, wall_offset_us: int, poll_registry: Callable[[], None]
    ) -> tuple[RealBroker, RealBroker] | None:
        """Start a broker of Kafka; None for any other node, or if the brokers are ours. Raises EmbeddedServerError."""
        if not self._plan.has_real_nodes or not isinstance(spec, BrokerSpec):
            return None
        broker = RealBroker(spec, self._folder, wall_offset_us=wall_offset_us)
        return broker, broker

    async def start_brokers(self, count: int, connect: str) -> bool:
        """Brokers are nodes here: the script starts them."""
        return False

    def feed(self, event: Event) -> None:
        """Nothing in the registry is needed to read their logs."""

    def check(self) -> None:
        """Each node's process is looked after by itself."""

    def end(self) -> None:
        """Each node's process is ended by itself."""
