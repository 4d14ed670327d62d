"""deposed_successor: a controller that gives up, and writes its own id over that of its successor."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from controller.controller import FAILURE_PAUSE_MS, Controller
from controller.election import Elected
from rebalance_lab.history.files import History
from rebalance_lab.wire.cluster import controller_payload
from rebalance_lab.wire.paths import CONTROLLER


async def signing(self: Controller, _elected: Elected) -> None:
    await self._tasks.sleep(FAILURE_PAUSE_MS * 1000)
    payload = controller_payload(self._broker_id, timestamp_ms=self._wall_ms())
    await self._client.ask(lambda session: session.set(CONTROLLER, payload))


def honest(seed: int) -> History:
    return trial("zombie-controller", seed, settings={"moment": "failover"})


def false(seed: int) -> History:
    with patch.object(Controller, "_step_down", signing):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="deposed_successor",
    world="A controller that gives up deletes nothing, and its successor goes on; but /controller holds the id of the "
    "one that has given up.",
    false=false,
    honest=honest,
)
