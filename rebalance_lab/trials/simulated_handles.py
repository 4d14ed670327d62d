"""The faults' handles in the simulator (`trials.stage.ProcessHandle`)."""

from __future__ import annotations

from rebalance_lab.kernel import Flag, Process
from rebalance_lab.trials.rest import RestTracker
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.world.simulated.zookeeper import NoSuchSession, SimulatedZooKeeper


class SimulatedMember:
    """A member in a simulated process of its own."""

    def __init__(
        self, actor: str, process: Process, closing: Flag, zookeeper: SimulatedZooKeeper, tracker: RestTracker
    ) -> None:
        self.actor = actor
        self._process = process
        self._closing = closing
        self._zookeeper = zookeeper
        self._tracker = tracker

    async def pause(self) -> str:
        self._process.pause()
        return self._shown()

    async def resume(self) -> str:
        self._process.resume()
        return self._shown()

    async def kill(self) -> str:
        self._process.kill()
        return self._shown()

    def ask_to_leave(self) -> None:
        self._closing.raise_()

    async def expire(self) -> str:
        session = self._session()
        try:
            self._zookeeper.expire(session)
        except NoSuchSession as error:
            raise TrialError(f"{self.actor}: {error}") from error
        return f"the server closed session {session:#x} of its own accord"

    def _session(self) -> int:
        state = self._tracker.members.get(self.actor)
        if state is None or state.session is None:
            raise TrialError(f"{self.actor} has no session yet")
        return int(state.session, 16)

    def _shown(self) -> str:
        return f"kernel process {self._process.name} is {self._process.state.value}"
