"""The faults' handle on the connections between nodes' processes (`trials.stage.Links`).

A cut or a delay acts in the process that dialed (`world.live.network`), so both processes are told, each with the
addresses of the other. A process records what it did as an event of its own, which the runner reads.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from rebalance_lab.history.events import Event, Kind
from rebalance_lab.kernel import Future, Kernel, TimedOut
from rebalance_lab.roles.spec import Command, SetLink
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.net.listening import address_of

#: The longest wait for a process that was told. One that stands still does not answer.
ANSWER_LIMIT_US = 5_000_000

#: What a process counts, and how it is said.
_COUNTS = {"held_bytes": "bytes held back", "hung": "connections that hung", "slowed_bytes": "bytes slowed"}


class TakesCommands(Protocol):
    """A node's process."""

    def tell(self, command: Command) -> None: ...


class LiveLinks:
    """All links of one trial. A process that is started again while a link is cut or slow is told again, and so are
    the others when a node listens at another address."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._processes: dict[str, TakesCommands] = {}
        self._addresses: dict[str, dict[str, None]] = {}
        #: (actor, peer) -> the last command.
        self._links: dict[tuple[str, str], SetLink] = {}
        self._counts: dict[tuple[str, str], Counter[str]] = {}
        self._answers: dict[int, Future[None]] = {}
        self._number = 0

    def add(self, actor: str, process: TakesCommands) -> None:
        """The node `actor` runs in this process."""
        self._processes[actor] = process
        self._addresses[actor] = {}

    def seen(self, event: Event) -> None:
        """Process an event of a node."""
        if event.kind is Kind.LISTENING and event.actor in self._addresses:
            address = str(address_of(event))
            self._addresses[event.actor][address] = None
            for (actor, peer), link in tuple(self._links.items()):
                if peer == event.actor:
                    self._tell(actor, peer, link, [address])
        elif event.kind is Kind.PROCESS_STARTED:
            for (actor, peer), link in tuple(self._links.items()):
                if actor == event.actor:
                    self._tell(actor, peer, link, list(self._addresses[peer]))
        elif event.kind is Kind.LINK_SET:
            counts = self._counts.setdefault((event.actor, str(event.of("peer"))), Counter())
            counts.update({name: count for name in _COUNTS if isinstance(count := event.of(name), int)})
            number = event.of("number")
            if isinstance(number, int) and number in self._answers:
                self._answers.pop(number).set(None)

    async def set(
        self, one: str, other: str, *, silent: tuple[bool, bool] = (False, False), slow_ms: tuple[int, int] = (0, 0)
    ) -> str:
        answers = []
        for way, (actor, peer) in enumerate(((one, other), (other, one))):
            link = SetLink(
                actor=actor,
                peer=peer,
                silent_to=silent[way],
                silent_from=silent[1 - way],
                slow_to_ms=slow_ms[way],
                slow_from_ms=slow_ms[1 - way],
            )
            self._links[actor, peer] = link
            answer = self._tell(actor, peer, link, list(self._addresses[peer]))
            if answer is not None:
                answers.append(answer)
        if not answers:
            raise TrialError(f"neither {one} nor {other} runs: there is no link between them")
        try:
            async with self._kernel.timeout(ANSWER_LIMIT_US, f"the link of {one} and {other}"):
                for answer in answers:
                    await answer
        except TimedOut as late:
            raise TrialError(f"{late}: a process does not answer; does it stand still?") from late
        counts = self._counts.pop((one, other), Counter()) + self._counts.pop((other, one), Counter())
        return ", ".join(f"{what}: {counts[name]}" for name, what in _COUNTS.items() if counts[name])

    def _tell(self, actor: str, peer: str, link: SetLink, addresses: list[str]) -> Future[None] | None:
        """Tell a process. None if it has ended."""
        self._number += 1
        try:
            self._processes[actor].tell(link.numbered(self._number, addresses))
        except TrialError:
            return None
        answer: Future[None] = Future((actor, "to set its link to", peer))
        self._answers[self._number] = answer
        return answer
