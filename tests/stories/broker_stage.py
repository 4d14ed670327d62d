"""A stage for stories about one broker: ZooKeeper, network and disk are simulated; a client asks over the network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from controller_stage import CONNECT
from controller_stage import Stage as Controllers

from rebalance_lab.broker.broker import Broker, BrokerSettings
from rebalance_lab.broker.calls import BrokerConfig, Parts
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.kernel import Flag, Process
from rebalance_lab.wire.kafka.calls import Call, KafkaCodec
from rebalance_lab.wire.kafka.schema import Message
from rebalance_lab.world.network import Address, Connection
from rebalance_lab.world.ports import Environment

CONNECT_TIMEOUT_US = 1_000_000


class BrokerStage:
    """`play(story)` runs `async def story(stage)` once broker 1 is registered.

    `others`: further brokers that are registered, and are not there. `controller`: False if another broker is the
    controller. `log`: the defaults of topics' logs. `host`: the name by which clients are to reach the broker; None:
    the address at which it listens. `seed` 0: messages pass as bytes.
    """

    def __init__(
        self,
        *,
        others: tuple[int, ...] = (),
        controller: bool = True,
        log: LogConfig | None = None,
        seed: int = 0,
        host: str | None = None,
        **config: Any,
    ) -> None:
        self._stage = Controllers(seed)
        self._others = others
        self._controller = controller
        self._settings = BrokerSettings(
            config=BrokerConfig(broker_id=1, **config),
            connect=CONNECT,
            host=host,
            port=9092,
            session_timeout_ms=2000,
            log=log or LogConfig(),
        )
        self.tasks = self._stage.tasks
        self.world = self._stage.world
        self.server = self._stage.server
        self.zookeeper = self._stage.other
        self.reports: list[tuple[str, dict[str, object]]] = []
        self.process: Process
        self.broker: Broker
        self.closing: Flag
        self._client: Environment
        self._connection: Connection[Call, Message] | None = None

    def play(self, story: Callable[[BrokerStage], Awaitable[None]]) -> None:
        async def run(stage: Controllers) -> None:
            self._client = stage.world.environment("client", stage.tasks.process("client"))
            for each in self._others:
                await stage.register(each)
            if not self._controller:
                await stage.other.create_if_missing("/controller", b'{"version":2,"brokerid":9,"timestamp":"1"}')
            async with stage.tasks.scope("brokers") as scope:
                self._scope = scope
                await self.start()
                await story(self)
                scope.cancel("the story has ended")

        self._stage.play(run)

    async def start(self) -> None:
        """Start the broker, also again after its end, and wait until it is registered."""
        self.process = self.tasks.process("b1")
        self.closing = self.tasks.flag("close the broker")
        self.broker = Broker(self.world.environment("b1", self.process), self._settings, self._report)
        before = len(self.reports)
        self._scope.spawn(self._run(self.broker, self.process, self.closing), "broker 1")
        while not any(event == "registered" for event, _ in self.reports[before:]):
            await self.tasks.sleep(10_000)
        if self._controller:
            await self.parts.until_metadata(lambda: 1 in self.parts.metadata.nodes, 10_000)

    async def _run(self, broker: Broker, process: Process, closing: Flag) -> None:
        await self.tasks.spawn(broker.run(closing), "broker", process=process)

    def _report(self, event: str, detail: dict[str, object]) -> None:
        self.reports.append((event, detail))

    @property
    def parts(self) -> Parts:
        return self.broker.parts

    def said(self, event: str) -> list[dict[str, object]]:
        return [detail for each, detail in self.reports if each == event]

    async def connect(self, codec: Any = None) -> Connection[Any, Any]:
        return await self._client.network.connect(
            Address("host-b1", 9092), codec or KafkaCodec(), timeout_us=CONNECT_TIMEOUT_US
        )

    async def ask(self, message: Message, version: int, *, timeout_us: int = 60_000_000) -> Any:
        """The response to a request, on one connection for all."""
        if self._connection is None or self._connection.ended.done:
            self._connection = await self.connect()
        return await self._connection.request(Call.of(message, version, "c"), timeout_us=timeout_us)

    async def settle(self) -> None:
        await self._stage.settle()

    async def there(self, path: str) -> bool:
        return await self._stage.there(path)
