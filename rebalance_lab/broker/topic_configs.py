"""Topics' settings on a broker: read when a log is opened or made, and again when they change
(`kafka.server.ZkConfigManager`, `kafka.common.ZkNodeChangeNotificationListener`, Kafka 3.9.1).

Whoever changes a configuration writes its znode, then a sequential one below `/config/changes`. Every broker watches
these, and reads the configuration that each of them names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from rebalance_lab.assignors import TopicPartition
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.log import PartitionLog
from rebalance_lab.broker.log.manager import LogManager
from rebalance_lab.broker.settings import InvalidSetting, log_config, without_effect
from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.cluster import read_configuration, read_configuration_change
from rebalance_lab.wire.errors import KafkaException
from rebalance_lab.wire.paths import CONFIG_CHANGES, TOPIC_CONFIGS, topic_config_path
from rebalance_lab.world.errors import NoNode
from rebalance_lab.world.ports import Clock, Node
from rebalance_lab.zkclient.pipelined import PipelinedClient, Request

#: How long a notification stays.
CHANGE_EXPIRATION_MS = 15 * 60 * 1000

_CHANGE = re.compile(r"config_change_([0-9]{1,19})")
_TOPICS = "topics/"


class TopicConfigs:
    """`defaults`: of topics that override nothing. `changed(topics)` is called when the settings of any topics have
    changed. `warn` takes a line for whoever runs the broker.

    What cannot be used, because somebody else wrote it, is reported and leaves the log as it is; a new log gets the
    defaults.
    """

    def __init__(
        self,
        tasks: Kernel,
        clock: Clock,
        logs: LogManager,
        defaults: LogConfig,
        *,
        changed: Callable[[Collection[str]], None],
        warn: Callable[[str], None],
    ) -> None:
        self.defaults = defaults
        self._told = changed
        self._clock = clock
        self._logs = logs
        self._warn = warn
        self._last_change = -1
        #: Of each topic, the settings without effect that were last reported.
        self._unused: dict[str, str] = {}
        #: Reading a topic's settings and applying them is one step: a log that is made meanwhile misses no change.
        self._applying = tasks.lock("settings of topics")

    async def load(self, client: PipelinedClient) -> dict[str, LogConfig]:
        """The configuration of each topic that overrides something."""
        names = (await client.ask(lambda session: session.children(TOPIC_CONFIGS))).value.names
        return {each: found for each, found in (await self._read(client, names)).items() if found is not None}

    async def log_of(self, client: PipelinedClient, partition: TopicPartition) -> PartitionLog:
        """The log of a partition, made if it is not there. Raises InvalidTopic and LogFailed."""
        async with self._applying:
            there = self._logs.get(partition)
            if there is not None:
                return there  # with its settings: of `load`, and of all changes since
            found = await self._read(client, [partition.topic])
            return await self._logs.create(partition, found[partition.topic] or self.defaults)

    async def follow(self, client: PipelinedClient) -> None:
        """Apply all changes, in this session. At its beginning all settings are read: the notification of an earlier
        change may be gone. Ends only with SessionExpired and SessionClosed."""
        everything = True
        while True:
            reply = await client.ask(lambda session: session.children(CONFIG_CHANGES, watch=True))
            changes = sorted((number, each) for each in reply.value.names if (number := _number(each)) is not None)
            new = [each for number, each in changes if number > self._last_change]
            changed = await self._changed(client, new)
            await self._apply(client, None if everything else changed)
            if changed:
                self._told(changed)
            self._last_change = max([self._last_change, *(number for number, _ in changes)])
            everything = False
            await self._purge(client, [each for _, each in changes])
            assert reply.watch is not None
            await reply.watch

    async def _changed(self, client: PipelinedClient, changes: Sequence[str]) -> set[str]:
        """The topics that these notifications name. Those of others are for parts that this broker does not have."""
        found = set()
        for path, node in await _nodes(client, [f"{CONFIG_CHANGES}/{each}" for each in changes]):
            try:
                entity = "" if node is None else read_configuration_change(path, node.data)
            except KafkaException as error:
                self._warn(str(error))
                continue
            if entity.startswith(_TOPICS):
                found.add(entity.removeprefix(_TOPICS))
        return found

    async def _apply(self, client: PipelinedClient, topics: set[str] | None) -> None:
        """Of these topics; None for all. Which of them have logs here is certain only while no log is being made."""
        async with self._applying:
            here = {each.partition.topic for each in self._logs.logs}
            found = await self._read(client, sorted(here if topics is None else here & topics))
            for topic, config in found.items():
                if config is not None:
                    self._logs.configure(topic, config)

    async def _read(self, client: PipelinedClient, topics: Sequence[str]) -> dict[str, LogConfig | None]:
        """The configuration of each topic; None if what is written cannot be used."""
        found: dict[str, LogConfig | None] = {}
        nodes = await _nodes(client, [topic_config_path(each) for each in topics])
        for topic, (path, node) in zip(topics, nodes, strict=True):
            try:
                overrides = {} if node is None else read_configuration(path, node.data)
                found[topic] = log_config(overrides, self.defaults)
                self._warn_once(topic, ", ".join(without_effect(overrides)))
            except (KafkaException, InvalidSetting) as error:
                self._warn(f"{path} is not applied: {error}")
                found[topic] = None
        return found

    def _warn_once(self, topic: str, unused: str) -> None:
        if unused != self._unused.get(topic, ""):
            self._unused[topic] = unused
            if unused:
                self._warn(f"topic {topic}: {unused}: kept, and without effect on this broker")

    async def _purge(self, client: PipelinedClient, changes: Iterable[str]) -> None:
        """Delete notifications that every live broker has seen long ago."""
        now_ms = self._clock.wall_ms()
        paths = [f"{CONFIG_CHANGES}/{each}" for each in changes]
        old = [
            path
            for path, node in await _nodes(client, paths)
            if node is not None and now_ms - node.stat.ctime_ms > CHANGE_EXPIRATION_MS
        ]
        for answer in await client.ask_all([_delete(each) for each in old]):
            if answer.error is not None and not isinstance(answer.error, NoNode):
                raise answer.error


async def _nodes(client: PipelinedClient, paths: Sequence[str]) -> list[tuple[str, Node | None]]:
    """Each path with its znode, None if there is none. Raises other errors than NoNode."""
    answers = await client.ask_all([_get(each) for each in paths])
    return [
        (path, None if isinstance(answer.error, NoNode) else answer.reply.value)
        for path, answer in zip(paths, answers, strict=True)
    ]


def _get(path: str) -> Request[Node]:
    return lambda session: session.get(path)


def _delete(path: str) -> Request[None]:
    return lambda session: session.delete(path)


def _number(name: str) -> int | None:
    """Of a notification; None if the name is another's."""
    match = _CHANGE.fullmatch(name)
    return None if match is None else int(match[1])
