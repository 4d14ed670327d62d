"""The registry's history from the logs of an ensemble's nodes.

A node logs what its leader proposes, before it is committed. A proposal is committed when a majority has logged it, and
every later leader has it (Zab). A proposal that only a minority has logged may still reach a majority, or disappear: a
node that is ahead of a new leader cuts its log back (TRUNC), and its reader must forget what it read there. Nodes that
are down count as well, because their files can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rebalance_lab.history.transactions import Transaction
from rebalance_lab.world.live.transaction_log import Record, TransactionLog
from rebalance_lab.world.live.transaction_records import TransactionLogError

_EPOCH_BITS = 32


@dataclass(slots=True)
class _Proposal:
    """A record that is not known to be committed. `logged`: node -> its file and end there."""

    transactions: tuple[Transaction, ...]
    logged: dict[int, tuple[Path, int]] = field(default_factory=dict)


class EnsembleLog:
    """Follows the logs of all nodes of an ensemble (one node is an ensemble, too).

    `data_dirs`: the dataDirs of all nodes, in any order. The log of a node that has not run yet is empty. The log of a
    node that was brought up to date by a snapshot has gaps, which the others' logs fill.
    """

    def __init__(self, data_dirs: Sequence[Path]) -> None:
        if not data_dirs:
            raise ValueError("an ensemble has a node at least: give its data directory")
        self._data_dirs = list(data_dirs)
        self._logs = [TransactionLog(each) for each in data_dirs]
        self._majority = len(data_dirs) // 2 + 1
        self._proposals: dict[int, _Proposal] = {}
        self._told: dict[int, int] = {}  # epoch -> the last zxid that was returned
        self._last = -1

    def poll(self) -> list[Transaction]:
        """The transactions that were committed since the last call, each once, in zxid order.

        Raises TransactionLogError: fewer than a majority of the nodes have ever run, a file is damaged in its middle,
        or a transaction reached a majority after one of a later epoch was returned, so the history has a gap (only one
        node knew it, which led without its log being copied).
        """
        begun = sum(log.begun for log in self._logs)
        if begun < self._majority:
            raise TransactionLogError(
                f"{begun} of {len(self._logs)} nodes have a transaction log"
                f" ({', '.join(str(each) for each in self._data_dirs)}): a majority must have run"
            )
        for node, log in enumerate(self._logs):
            for file, record in log.poll_records():
                self._logged(node, file, record)
        self._forget_what_was_cut()
        return self._committed()

    def _logged(self, node: int, file: Path, record: Record) -> None:
        zxid = record.zxid
        if zxid <= self._told.get(zxid >> _EPOCH_BITS, -1):
            return
        proposal = self._proposals.get(zxid)
        if proposal is None:
            proposal = self._proposals[zxid] = _Proposal(record.transactions)
        proposal.logged[node] = (file, record.end)

    def _forget_what_was_cut(self) -> None:
        """A log is cut back by shortening a file and deleting those after it. Later records go to a new file."""
        sizes: dict[Path, int] = {}
        for zxid, proposal in list(self._proposals.items()):
            for node, (file, end) in list(proposal.logged.items()):
                if file not in sizes:
                    sizes[file] = _size(file)
                if sizes[file] < end:
                    del proposal.logged[node]
            if not proposal.logged:
                del self._proposals[zxid]

    def _committed(self) -> list[Transaction]:
        """The proposals of a majority, and all earlier ones of their epoch: a leader commits in order, and a node may
        have got the earlier ones by a snapshot."""
        newest: dict[int, int] = {}
        for zxid, proposal in self._proposals.items():
            if len(proposal.logged) >= self._majority:
                epoch = zxid >> _EPOCH_BITS
                newest[epoch] = max(zxid, newest.get(epoch, -1))
        committed = sorted(zxid for zxid in self._proposals if zxid <= newest.get(zxid >> _EPOCH_BITS, -1))
        if committed and committed[0] < self._last:
            raise TransactionLogError(
                f"transaction {committed[0]:#x} came to a majority of the logs after {self._last:#x} of a later epoch:"
                " the history has a hole there"
            )
        found: list[Transaction] = []
        for zxid in committed:
            found.extend(self._proposals.pop(zxid).transactions)
            self._told[zxid >> _EPOCH_BITS] = self._last = zxid
        return found


def _size(file: Path) -> int:
    """In bytes; -1 if there is no such file."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return -1
