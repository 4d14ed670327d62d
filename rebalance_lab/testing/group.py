"""A group of ZooKeeper-era consumers for a test: processes that share a topic, and can be harmed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.history.rebalances import RebalanceOutcome
from rebalance_lab.history.rest import RestTracker
from rebalance_lab.roles.member import MemberSpec
from rebalance_lab.subjects.zk_group.cluster import broker_znode
from rebalance_lab.subjects.zk_group.subject import common_parameters, legal_name
from rebalance_lab.testing.ensemble import LIMIT_S, POLL_S, ZooKeeperEnsemble
from rebalance_lab.testing.registry import Registered, Registry
from rebalance_lab.trials.lab import QUIET_LEAST_MS
from rebalance_lab.trials.plan import PlanError, Settings, one_of
from rebalance_lab.trials.scenario import within_ticks
from rebalance_lab.trials.stages.processes.nodes import EventFile, LabProcess, on_this_machine
from rebalance_lab.wire.paths import broker_path, topic_path
from rebalance_lab.wire.payloads import topic_payload
from rebalance_lab.world.process.states import RunState
from zkconsumer.config import ConsumerConfig
from zkconsumer.rules import RULE_SETS


@dataclass(slots=True)
class MemberEvents:
    """What a member has written to its event file so far. `poll` reads on.

    `consumer`: its id. `dealt_from`: which list of ids its latest attempt dealt from.
    `outcome`: of its latest rebalance that has ended. `gave_up`: how many failed, and
    `attempts`: how often the last of them was tried. `believes`: partitions it thinks it owns.
    """

    actor: str
    file: EventFile
    tracker: RestTracker = field(default_factory=RestTracker)
    consumer: str | None = None
    dealt_from: int | None = None
    outcome: str | None = None
    gave_up: int = 0
    attempts: int = 0
    believes: dict[int, None] = field(default_factory=dict)

    def poll(self) -> bool:
        """True: something came that bears on whether it is at rest."""
        news = [self._take(event) for event in self.file.poll()]
        return any(news)

    def _take(self, event: Event) -> bool:
        bears = self.tracker.feed(event)
        match event.kind:
            case Kind.MEMBER_STARTED:
                self.consumer = event.member
            case Kind.DECIDED:
                zxid = event.of("members_zxid")
                self.dealt_from = zxid if isinstance(zxid, int) else None
            case Kind.REBALANCE_ENDED:
                self._ended(event)
            case Kind.OWNED if event.partition is not None:
                self.believes[event.partition] = None
            case Kind.DISOWNED if event.partition is not None:
                self.believes.pop(event.partition, None)
            case _:
                return bears
        return True

    def _ended(self, event: Event) -> None:
        self.outcome = str(event.of("outcome"))
        if self.outcome == RebalanceOutcome.FAILED:
            attempts = event.of("attempts")
            self.gave_up += 1
            self.attempts = attempts if isinstance(attempts, int) else 0

    @property
    def last_change_us(self) -> int:
        return self.tracker.last_change_us

    def unrest(self) -> str | None:
        """Why it has something to do yet, by itself; None when it has not."""
        state = self.tracker.nodes.get(self.actor)
        if state is None:
            return "it has not come yet"
        busy = state.busy({})
        if busy is not None:
            return busy
        if self.outcome is None:
            return "it has not rebalanced yet"
        return None if self.outcome == RebalanceOutcome.OK else f"it gave up a rebalance after {self.attempts} attempts"

    def disagrees(self, registered: Registered, owners: Mapping[int, str]) -> str | None:
        """Why it does not know what the registry says; None when it does."""
        if self.consumer not in registered.ids:
            return "it is not registered"
        if self.dealt_from != registered.zxid:
            return "it has not dealt from these ids yet"
        mine = sorted(each for each, thread in owners.items() if consumer_of(thread) == self.consumer)
        if mine != sorted(self.believes):
            return f"it believes that it owns {sorted(self.believes)}, and the registry says {mine}"
        return None


def consumer_of(thread: str) -> str:
    """The consumer id in a thread id (`<consumer id>-<i>`)."""
    return thread.rpartition("-")[0]


def unsettled(
    running: Sequence[MemberEvents],
    paused: Sequence[MemberEvents],
    registered: Registered,
    owners: Mapping[int, str],
    partitions: int,
) -> str | None:
    """Why the registry and the members are not at one; None when they are. `paused`: members that
    stand still; they count for as long as they are registered."""
    for member in paused:
        if member.consumer in registered.ids:
            return f"{member.actor}: it is paused, and registered until its session ends"
    strangers = sorted(set(registered.ids) - {member.consumer for member in running})
    if strangers:
        return f"registered, and not a member that runs: {', '.join(strangers)}"
    wrong = sorted({*range(partitions)} ^ set(owners))
    if wrong:
        return f"without an owner, or not of the topic: {', '.join(map(str, wrong))}"
    for partition, thread in sorted(owners.items()):
        if consumer_of(thread) not in registered.ids:
            return f"partition {partition} is owned by {thread}, who is not registered"
    for member in running:
        why = member.disagrees(registered, owners)
        if why is not None:
            return f"{member.actor}: {why}"
    return None


def in_registry(registered: Registered, owners: Mapping[int, str], partitions: int) -> str:
    """For the message of a timeout: the registered members, and the owners."""
    owned = [f"{each}: {owners.get(each, 'nobody')}" for each in sorted({*range(partitions), *owners})]
    return f"ids: {', '.join(registered.ids) or 'none'}; owners: {', '.join(owned) or 'none'}"


def gave_up(members: Sequence[MemberEvents], paused: Sequence[MemberEvents]) -> str:
    """For the same message: the members that gave up, and those that are paused."""
    tired = [f"{each.actor} ({each.gave_up} times, {each.attempts} attempts)" for each in members if each.gave_up]
    still = [each.actor for each in paused]
    return f"gave up a rebalance: {', '.join(tired) or 'nobody'}; paused: {', '.join(still) or 'nobody'}"


#: A group at rest stays so for this long before it is called settled (the runner's rule, too).
_QUIET_BACKOFFS = 2

#: Members that come at once take each other's partitions for a few attempts.
_LEAST_RETRIES = 10

#: A look at the registry that is begun in time may take so long, and so may a timeout's message.
_LAST_LOOK_S = 2.0

#: Settings that the command line has, too: its bounds hold here.
_COMMON = Settings(common_parameters()).by_name
_NUMBERS = ("partitions", "members", "session_timeout_ms", "rebalance_backoff_ms", "rebalance_max_retries")


def _now_us() -> int:
    """As members' events count: CLOCK_MONOTONIC."""
    return time.monotonic_ns() // 1000


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How a group is made. `rules`: `described` (the articles) or `shipped` (Kafka 0.8.2.2); times
    in milliseconds, as Kafka names them. `rebalance_max_retries`: None for as many as it takes, see `completed`."""

    group: str = "group"
    topic: str = "topic"
    partitions: int = 6
    members: int = 2
    rules: str = "shipped"
    session_timeout_ms: int = 2000
    rebalance_backoff_ms: int = 300
    rebalance_max_retries: int | None = None

    def completed(self, tick_ms: int) -> GroupSettings:
        """The settings with enough attempts to outlast a dead member's session, if no number is given. Raises PlanError
        for settings that are impossible, or that the servers would change.

        The last attempt starts (retries - 1) back-offs after the first (docs/defects.md, F1). A
        session ends at a tick, and followers tell the leader of its pings half a tick late: two
        ticks more cover both.
        """
        self._check(tick_ms)
        if self.rebalance_max_retries is not None:
            return self
        backoffs = (self.session_timeout_ms + 2 * tick_ms) // self.rebalance_backoff_ms + 1
        return replace(self, rebalance_max_retries=max(_LEAST_RETRIES, backoffs + 1))

    def _check(self, tick_ms: int) -> None:
        for name in ("group", "topic"):
            legal_name(name, getattr(self, name))
        one_of("rule set", self.rules, tuple(RULE_SETS))
        for name in _NUMBERS:
            number = getattr(self, name)
            if number is not None:
                _COMMON[name].parse(number)
        within_ticks(tick_ms, self.session_timeout_ms)


class ConsumerGroup:
    """What the fixture `consumer_group` makes. Members are named m1, m2, …; below `chroot` the group
    is alone in its ZooKeeper, with znodes as Kafka 0.8 has them. Methods that take a member's name
    raise PlanError when none of that name runs."""

    def __init__(self, zookeeper: ZooKeeperEnsemble, chroot: str, folder: Path, settings: GroupSettings) -> None:
        self.settings = settings.completed(zookeeper.tick_ms)
        self.connect_string = zookeeper.connect_string + chroot
        self._folder = folder
        self._processes: dict[str, LabProcess] = {}
        self._events: dict[str, MemberEvents] = {}
        self._started = 0
        self._touched_us = 0
        self._registry = Registry(zookeeper.connect_string, chroot)
        try:
            self._write_cluster()
        except BaseException:
            self.end()
            raise

    def _write_cluster(self) -> None:
        """A broker, and the topic on it, as znodes."""
        replicas = {partition: [0] for partition in range(self.settings.partitions)}
        self._registry.create(broker_path(0), broker_znode(0))
        self._registry.create(topic_path(self.settings.topic), topic_payload(replicas))

    # -- facts ------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[str, ...]:
        """Those that were neither killed nor left, in the order they came."""
        return tuple(self._processes)

    def consumer_ids(self) -> tuple[str, ...]:
        """The ids that are registered, sorted. Raises TimeoutError, as all that asks ZooKeeper."""
        return self._registry.registered(self.settings.group).ids

    def owners(self) -> dict[int, str]:
        """Partition -> consumer thread id, of those that have an owner. They are read one after
        another: during a rebalance it may never have been so all at once."""
        return self._registry.owners(self.settings.group, self.settings.topic)

    def partitions_of(self, member: str) -> tuple[int, ...]:
        """What the registry says a member owns, sorted; also one that was killed or has left. Raises
        PlanError: none of that name ever came."""
        self._check_came(member)
        mine = f"{self.settings.group}_host-{member}-"
        return tuple(sorted(partition for partition, owner in self.owners().items() if owner.startswith(mine)))

    # -- waiting ----------------------------------------------------------------------------

    def wait_until_settled(self, timeout_s: float = LIMIT_S) -> dict[int, str]:
        """Wait until the group has nothing more to do. Returns the owners.

        Settled means: exactly the running members are registered; each partition is owned by one of them; the last
        rebalance of each succeeded and used the current list of ids; each believes that it owns what the registry says,
        and has nothing in progress; and all this has been true for two back-offs. A paused member does not count as
        running, but the group is not settled before its session has ended.

        Raises TimeoutError, whose message lists the registered members, the owners and the members that gave up. Raises
        TrialError if a member's process has ended by itself.
        """
        give_up = time.monotonic() + timeout_s
        while True:
            owners, why = self._settled(max(_LAST_LOOK_S, give_up - time.monotonic()))
            if why is None:
                return owners
            if time.monotonic() > give_up:
                raise TimeoutError(
                    f"group {self.settings.group} did not settle within {timeout_s:g} s: {why}; {self._described()}"
                )
            time.sleep(POLL_S)

    def _settled(self, limit_s: float) -> tuple[dict[int, str], str | None]:
        """The owners, and why the group has not settled; None when it has."""
        running, paused = self._looked_at()
        for member in running:
            why = member.unrest()
            if why is not None:
                return {}, f"{member.actor}: {why}"
        changed_us = max([self._touched_us, *(member.last_change_us for member in running)])
        quiet_ms = max(_QUIET_BACKOFFS * self.settings.rebalance_backoff_ms, QUIET_LEAST_MS)
        if _now_us() - changed_us < quiet_ms * 1000:
            return {}, f"something has changed less than {quiet_ms} ms ago"
        try:
            registered = self._registry.registered(self.settings.group, limit_s)
            owners = self._registry.owners(self.settings.group, self.settings.topic, limit_s)
        except TimeoutError as error:
            return {}, str(error)
        why = unsettled(running, paused, registered, owners, self.settings.partitions)
        if why is None and any(member.poll() for member in running):
            why = "a member did something while the owners were read"
        return owners, why

    def _looked_at(self) -> tuple[list[MemberEvents], list[MemberEvents]]:
        """The members that run, and those that are paused, with all that they have recorded."""
        running: list[MemberEvents] = []
        paused: list[MemberEvents] = []
        for name, process in self._processes.items():
            process.check()
            self._events[name].poll()
            (paused if process.process.state is RunState.STOPPED else running).append(self._events[name])
        return running, paused

    def _described(self) -> str:
        _, paused = self._looked_at()
        told, settings = [self._events[name] for name in self._processes], self.settings
        try:
            registered = self._registry.registered(settings.group, _LAST_LOOK_S)
            owners = self._registry.owners(settings.group, settings.topic, _LAST_LOOK_S)
        except TimeoutError as error:
            return f"{error}; {gave_up(told, paused)}"
        return f"{in_registry(registered, owners, settings.partitions)}; {gave_up(told, paused)}"

    # -- changes ----------------------------------------------------------------------------

    def add_member(self) -> str:
        """Start another member, and do not wait for it. Returns its name."""
        self._started += 1
        name = f"m{self._started}"
        settings, retries = self.settings, self.settings.rebalance_max_retries
        assert retries is not None, "the settings are completed"
        spec = MemberSpec(
            actor=name,
            host=f"host-{name}",
            seed=self._started,
            rules=settings.rules,
            assignor=None,
            config=ConsumerConfig(
                zookeeper_connect=self.connect_string,
                zookeeper_session_timeout_ms=settings.session_timeout_ms,
                zookeeper_connection_timeout_ms=settings.session_timeout_ms,
                group_id=settings.group,
                rebalance_backoff_ms=settings.rebalance_backoff_ms,
                rebalance_max_retries=retries,
            ),
            streams={settings.topic: 1},
            plant=None,
            events=str(self._folder / f"{name}.jsonl"),
        )
        self._processes[name] = on_this_machine(name, [spec], self._folder)
        self._events[name] = MemberEvents(name, EventFile(Path(spec.events)))
        self._touched_us = _now_us()
        return name

    def leave(self, member: str) -> None:
        """Ask for a clean leave (SIGTERM); it has left on return. Raises TrialError: it did not, and
        was killed (a paused one cannot leave)."""
        process = self._without(member)
        process.may_end = True
        process.process.terminate()
        try:
            process.wait()
        finally:
            process.end()

    def kill(self, member: str) -> None:
        """SIGKILL. Its session lives on until it expires."""
        process = self._without(member)
        process.end()

    def _check_came(self, member: str) -> None:
        if member not in [f"m{number}" for number in range(1, self._started + 1)]:
            one_of("member", member, self.members)

    def _process(self, member: str) -> LabProcess:
        self._check_came(member)
        if member not in self._processes:
            raise PlanError(f"{member} was killed or has left; there are: {', '.join(self.members) or 'none'}")
        return self._processes[member]

    def _without(self, member: str) -> LabProcess:
        process = self._process(member)
        del self._processes[member]
        del self._events[member]
        self._touched_us = _now_us()
        return process

    def pause(self, member: str) -> None:
        """SIGSTOP: past its session it becomes a zombie, and `wait_until_settled` waits for that."""
        self._process(member).process.pause()
        self._touched_us = _now_us()

    def resume(self, member: str) -> None:
        """SIGCONT."""
        self._process(member).process.resume()
        self._touched_us = _now_us()  # it needs a moment to find out what it has missed

    def end(self) -> None:
        """Kill the members that still live."""
        for process in self._processes.values():
            process.end()
        self._processes.clear()
        self._registry.close()


@contextmanager
def running_group(
    zookeeper: ZooKeeperEnsemble, chroot: str, folder: Path, settings: GroupSettings
) -> Iterator[ConsumerGroup]:
    """A group with its first members started, for as long as the context lasts. Raises PlanError
    for settings that cannot be."""
    group = ConsumerGroup(zookeeper, chroot, folder, settings)
    try:
        for _ in range(settings.members):
            group.add_member()
        yield group
    finally:
        group.end()
