"""E2: brokers that look at /controller again, and forget to ask for the watch."""

from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from counterfeit import Counterfeit, trial

from rebalance_lab.history.files import History
from rebalance_lab.kernel import Future
from rebalance_lab.world.ports import Reply, Stat, WatchEvent, WatchKind
from rebalance_lab.zkclient.pipelined import PipelinedClient

ASK = PipelinedClient.ask


async def forgetful(self: PipelinedClient, request: Any) -> Reply[Any]:
    """The answer, with a watch that never fires if one has fired for a controller that went."""
    reply = await ASK(self, request)
    if reply.watch is None or not (reply.value is None or isinstance(reply.value, Stat)):
        return reply
    fired = TOLD.setdefault(self, [])
    if fired:
        return Reply(reply.value, reply.zxid, Future("a watch that was never set"))
    reply.watch.on(lambda watch: fired.append(watch) if _went(watch) else None)
    return reply


def _went(watch: Future[WatchEvent]) -> bool:
    return watch.error is None and watch.result().kind is WatchKind.DELETED


#: The notifications that each client has had.
TOLD: WeakKeyDictionary[PipelinedClient, list[Future[WatchEvent]]] = WeakKeyDictionary()


def honest(seed: int) -> History:
    return trial("controller-failover", seed, settings={})


def false(seed: int) -> History:
    with patch.object(PipelinedClient, "ask", forgetful):
        return honest(seed)


COUNTERFEIT = Counterfeit(
    claim="E2",
    check="missed_election",
    world="All brokers watch, compete and look again, and each election has one winner; but after its first "
    "notification a broker takes no notice of another, as a client does that registers its listener once.",
    false=false,
    honest=honest,
)
