"""registry_overlap: a recorder that loses one record of the transaction log."""

from unittest.mock import patch

from counterfeit import Counterfeit, trial

from rebalance_lab.history.events import Event
from rebalance_lab.history.files import History
from rebalance_lab.history.transactions import RegistryTracker, Transaction, TransactionKind

_FEED = RegistryTracker.feed


def false(seed: int) -> History:
    lost: list[Transaction] = []

    def feed(self: RegistryTracker, transaction: Transaction) -> list[Event]:
        release = transaction.kind is TransactionKind.DELETE and transaction.path.endswith("/owners/t1/2")
        if release and not lost:
            lost.append(transaction)
            return []
        return _FEED(self, transaction)

    with patch.object(RegistryTracker, "feed", feed):
        return trial("walkthrough", seed)


COUNTERFEIT = Counterfeit(
    claim=None,
    check="registry_overlap",
    world="The recorder loses one record, the release of a partition that moves to another member; the events "
    "that it writes are numbered without a gap.",
    false=false,
    honest=lambda seed: trial("walkthrough", seed),
)
