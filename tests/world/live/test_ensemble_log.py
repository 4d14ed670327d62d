"""The log of an ensemble: what a majority has, once, in order; what was cut is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_writer import FILE_HEADER, record, write, write_multi

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.world.live.ensemble_log import EnsembleLog
from rebalance_lab.world.live.transaction_log import TransactionLog
from rebalance_lab.world.live.transaction_records import TransactionLogError


def at(epoch: int, count: int) -> int:
    return (epoch << 32) + count


def txn(epoch: int, count: int) -> Transaction:
    return Transaction(at(epoch, count), 0x10, count, 1000 + count, TransactionKind.CREATE, path=f"/{epoch}.{count}")


class Nodes:
    """Data directories of nodes, written record by record."""

    def __init__(self, folder: Path, count: int = 3) -> None:
        self.data_dirs = [folder / f"z{number + 1}" for number in range(count)]
        self._files: dict[int, Path] = {}
        self._ends: list[list[tuple[Path, int]]] = [[] for _ in self.data_dirs]  # of each record

    def logs(self, node: int, *zxids: tuple[int, int]) -> None:
        for epoch, count in zxids:
            self.append(node, at(epoch, count), write(txn(epoch, count)))

    def append(self, node: int, zxid: int, data: bytes) -> None:
        file = self._files.get(node)
        if file is None:
            folder = self.data_dirs[node] / "version-2"
            folder.mkdir(parents=True, exist_ok=True)
            file = self._files[node] = folder / f"log.{zxid:x}"
            file.write_bytes(FILE_HEADER)
        with file.open("ab") as log:
            log.write(data)
        self._ends[node].append((file, file.stat().st_size))

    def restarts(self, node: int) -> None:
        """What it logs from here on goes into a new file."""
        self._files.pop(node, None)

    def cuts(self, node: int, records: int) -> None:
        """TRUNC: the last records go. The file of the last that stays is shortened, and those
        behind it are deleted; a new one is begun."""
        ends = self._ends[node]
        gone = {file for file, _ in ends[-records:]}
        del ends[-records:]
        last, end = ends[-1]
        with last.open("r+b") as log:
            log.truncate(end)
        for file in gone - {last}:
            file.unlink()
        self.restarts(node)


@pytest.fixture
def nodes(tmp_path: Path) -> Nodes:
    return Nodes(tmp_path)


def told(log: EnsembleLog) -> list[str]:
    return [each.path for each in log.poll()]


def test_a_record_counts_when_a_majority_has_it_and_once(nodes: Nodes) -> None:
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1), (1, 2))
    nodes.logs(1, (1, 1))
    assert told(log) == ["/1.1"]
    nodes.logs(2, (1, 1), (1, 2))
    assert told(log) == ["/1.2"]
    nodes.logs(1, (1, 2))
    assert told(log) == []
    assert told(EnsembleLog(nodes.data_dirs)) == ["/1.1", "/1.2"]


def test_a_log_that_was_cut_back(nodes: Nodes) -> None:
    """The old leader had logged two records alone; the next one never knew of them."""
    log = EnsembleLog(nodes.data_dirs)
    for node in range(3):
        nodes.logs(node, (1, 1))
    nodes.logs(0, (1, 2), (1, 3))
    assert told(log) == ["/1.1"]
    for node in (1, 2):
        nodes.restarts(node)
        nodes.logs(node, (2, 1))
    assert told(log) == ["/2.1"]
    nodes.cuts(0, records=2)
    nodes.logs(0, (2, 1), (2, 2))
    nodes.logs(1, (2, 2))
    assert told(log) == ["/2.2"]
    assert told(EnsembleLog(nodes.data_dirs)) == ["/1.1", "/2.1", "/2.2"]


def test_a_vote_that_was_cut_back_does_not_count_any_more(nodes: Nodes) -> None:
    """Were it kept, z2's record would look like a majority with z1's."""
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1), (1, 2))
    nodes.logs(1, (1, 1))
    assert told(log) == ["/1.1"]
    nodes.cuts(0, records=1)
    assert told(log) == []
    nodes.logs(1, (1, 2))
    assert told(log) == []
    nodes.logs(2, (1, 1), (1, 2))
    assert told(log) == ["/1.2"]


def test_a_whole_file_that_was_deleted(nodes: Nodes) -> None:
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1))
    nodes.restarts(0)
    nodes.logs(0, (1, 2))
    nodes.logs(1, (1, 1))
    assert told(log) == ["/1.1"]
    nodes.cuts(0, records=1)
    assert not (nodes.data_dirs[0] / "version-2" / f"log.{at(1, 2):x}").exists()
    nodes.logs(1, (1, 2))
    nodes.logs(0, (2, 1))
    assert told(log) == []
    nodes.logs(2, (1, 1), (1, 2))
    assert told(log) == ["/1.2"]


def test_a_node_that_came_by_a_snapshot_has_a_hole(nodes: Nodes) -> None:
    """z3 logged nothing of 1.2 and 1.3, and z2 is gone with its files' ends: a leader commits
    in order, so what stands before a committed record of its epoch is committed."""
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1), (1, 2), (1, 3), (1, 4))
    nodes.logs(1, (1, 1))
    assert told(log) == ["/1.1"]
    nodes.logs(2, (1, 4))
    assert told(log) == ["/1.2", "/1.3", "/1.4"]


def test_a_record_that_comes_too_late_is_a_hole(nodes: Nodes) -> None:
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1), (2, 1))
    nodes.logs(1, (2, 1))
    assert told(log) == ["/2.1"]
    nodes.logs(2, (1, 1))
    for _ in range(2):  # it does not go away
        with pytest.raises(
            TransactionLogError, match=r"transaction 0x100000001 came to a majority .* after 0x200000001"
        ):
            log.poll()


def test_nodes_that_have_not_run_yet(nodes: Nodes) -> None:
    log = EnsembleLog(nodes.data_dirs)
    nodes.logs(0, (1, 1))
    with pytest.raises(TransactionLogError, match=r"1 of 3 nodes have a transaction log .*: a majority must have run"):
        log.poll()
    nodes.logs(2, (1, 1))
    assert told(log) == ["/1.1"]
    with pytest.raises(ValueError, match="give its data directory"):
        EnsembleLog([])


def test_one_node_is_an_ensemble(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path, count=1)
    nodes.logs(0, (0, 1), (0, 2))
    parts = [txn(0, 3), txn(0, 3)]
    nodes.append(0, at(0, 3), write_multi(parts))
    nodes.append(0, at(0, 4), record(txn(0, 4), 7, b"an ACL"))
    log = EnsembleLog(nodes.data_dirs)
    found = log.poll()
    other = Transaction(at(0, 4), 0x10, 4, 1004, TransactionKind.OTHER)
    assert found == TransactionLog(nodes.data_dirs[0]).poll() == [txn(0, 1), txn(0, 2), *parts, other]
    assert log.poll() == []


def test_a_broken_file_is_named_each_time(nodes: Nodes) -> None:
    for node in range(3):
        nodes.logs(node, (1, 1))
    nodes.append(1, at(1, 2), b"\1" * 40)
    log = EnsembleLog(nodes.data_dirs)
    for _ in range(2):
        with pytest.raises(TransactionLogError, match=r"z2/version-2/log\.100000001"):
            log.poll()


# -- any ensemble -------------------------------------------------------------------------------


@given(st.data())
def test_whatever_an_ensemble_does(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Leaders propose, nodes log in order, a majority commits; new leaders have the longest
    log of a majority, and cut the others back. Whenever the log is read: the committed ones so
    far, and in the end all of them, once."""
    nodes = Nodes(tmp_path_factory.mktemp("nodes"))
    log = EnsembleLog(nodes.data_dirs)
    kept: list[list[tuple[int, int]]] = [[], [], []]
    for node in range(3):
        nodes.logs(node, (1, 1))
        kept[node].append((1, 1))
    found = told(log)
    epoch, leader, history = 1, 0, [(1, 1)]
    for _ in range(data.draw(st.integers(1, 25), "steps")):
        step = data.draw(st.sampled_from(["propose", "follow", "follow", "elect", "read"]))
        if step == "propose":
            last = history[-1]
            history.append((epoch, last[1] + 1 if last[0] == epoch else 1))
            nodes.logs(leader, history[-1])
            kept[leader].append(history[-1])
        elif step == "follow":
            node = data.draw(st.sampled_from([each for each in range(3) if each != leader]))
            common = len(kept[node])
            assert kept[node] == history[:common]
            if common < len(history):
                nodes.logs(node, history[common])
                kept[node].append(history[common])
        elif step == "elect":
            voters = data.draw(st.sampled_from([(0, 1), (1, 2), (0, 2)]))
            leader = max(voters, key=lambda node: kept[node][-1])
            epoch, history = epoch + 1, list(kept[leader])
            for node in range(3):
                surplus = [each for each in kept[node] if each not in history]
                if surplus:
                    nodes.cuts(node, records=len(surplus))
                    kept[node] = [each for each in kept[node] if each in history]
                nodes.restarts(node)
        else:
            found += told(log)
            counted = [f"/{e}.{c}" for e, c in history if sum((e, c) in each for each in kept) >= 2]
            assert found == counted
    for node in range(3):
        nodes.logs(node, *history[len(kept[node]) :])
    found += told(log)
    assert found == [f"/{epoch}.{count}" for epoch, count in history]
