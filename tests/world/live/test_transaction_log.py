"""The transaction log's reader: against a writer of our own, cut and broken anywhere, and
against what a live server writes."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError
from log_writer import DIGEST, FILE_HEADER, OPEN_TO_ALL, blob, body, record, vector, write, write_multi

from rebalance_lab.history.transactions import Transaction, TransactionKind
from rebalance_lab.world.live import transaction_log
from rebalance_lab.world.live.server_process import EmbeddedZooKeeper
from rebalance_lab.world.live.transaction_log import RECORD_LIMIT_BYTES, TransactionLog, parse, read
from rebalance_lab.world.live.transaction_records import TransactionLogError


def parsed(data: bytes, where: str = "log.1") -> list[Transaction]:
    return parse(data, 0, where).transactions


# -- any log, cut or broken anywhere ------------------------------------------------------------

longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)


def transactions() -> st.SearchStrategy[Transaction]:
    origin: dict[str, Any] = {"zxid": longs, "session_id": longs, "cxid": ints, "wall_ms": longs}
    path = st.text(min_size=1, max_size=20).map(lambda text: "/" + text)
    data = st.binary(max_size=40)

    def of(kind: TransactionKind, **fields: Any) -> st.SearchStrategy[Transaction]:
        return st.builds(Transaction, kind=st.just(kind), **origin, **fields)

    return st.one_of(
        of(TransactionKind.CREATE, path=path, data=data, ephemeral=st.booleans()),
        of(TransactionKind.SET, path=path, data=data, version=ints),
        of(TransactionKind.DELETE, path=path),
        of(TransactionKind.CHECK, path=path, version=st.integers(0, 2**31 - 2)),
        of(TransactionKind.ERROR, code=ints),
        of(TransactionKind.SESSION_OPENED, timeout_ms=ints),
        of(TransactionKind.SESSION_CLOSED, removed=st.none() | st.lists(path, max_size=4).map(tuple)),
    )


logs = st.lists(transactions(), max_size=6)


@given(logs, st.integers(0, 50))
def test_what_was_written_is_read(log: list[Transaction], padding: int) -> None:
    data = FILE_HEADER + b"".join(map(write, log))
    page = parse(data + b"\0" * padding, 0, "log.1")
    assert page.transactions == log
    assert page.next_offset == len(data)


@given(logs, st.data(), st.integers(0, 50))
def test_a_log_cut_anywhere_is_read_to_the_cut_and_then_to_its_end(
    log: list[Transaction], draw: st.DataObject, padding: int
) -> None:
    """The reader looks while the server is writing: the rest is not there, or zeros."""
    records = [write(txn) for txn in log]
    data = FILE_HEADER + b"".join(records)
    cut = draw.draw(st.integers(0, len(data)))
    page = parse(data[:cut] + b"\0" * padding, 0, "log.1")
    whole = 0
    while whole < len(log) and len(FILE_HEADER) + sum(map(len, records[: whole + 1])) <= cut:
        whole += 1
    assert page.transactions == log[:whole]
    rest = parse(data[page.next_offset :], page.next_offset, "log.1")
    assert page.transactions + rest.transactions == log
    assert rest.next_offset == len(data)


@given(st.lists(transactions(), min_size=2, max_size=5), st.data())
def test_a_changed_byte_never_passes(log: list[Transaction], draw: st.DataObject) -> None:
    """In any record but the last: an error, or at worst nothing from there on; never a record
    that was not written."""
    data = bytearray(FILE_HEADER + b"".join(map(write, log)))
    last = len(data) - len(write(log[-1]))
    position = draw.draw(st.integers(len(FILE_HEADER), last - 1))
    data[position] ^= draw.draw(st.integers(1, 255))
    found: list[Transaction] = []
    with suppress(TransactionLogError):
        found = parsed(bytes(data))
    assert len(found) < len(log)
    assert found == log[: len(found)]


@given(st.lists(transactions(), min_size=1, max_size=4))
def test_a_multi_gives_its_operations_or_their_undoing(parts: list[Transaction]) -> None:
    head = parts[0]
    failed = any(part.kind is TransactionKind.ERROR for part in parts)
    expected = []
    for part in parts:
        if failed and part.kind is not TransactionKind.ERROR:
            part = Transaction(0, 0, 0, 0, TransactionKind.ERROR)  # noqa: PLW2901
        expected.append(replace(part, zxid=head.zxid, session_id=head.session_id, cxid=head.cxid, wall_ms=head.wall_ms))
    assert parsed(FILE_HEADER + write_multi(parts)) == expected


# -- single cases -------------------------------------------------------------------------------

CREATE = Transaction(7, 0x100, 3, 1000, TransactionKind.CREATE, path="/a", data=b"x", ephemeral=True)
LASTING = Transaction(7, 0x100, 3, 1000, TransactionKind.CREATE, path="/a", data=b"x")
DELETE = Transaction(8, 0x100, 4, 1001, TransactionKind.DELETE, path="/a")


def test_null_data_are_empty() -> None:
    content = blob(b"/a") + blob(None) + OPEN_TO_ALL + b"\0" + struct.pack("!i", 1)
    (found,) = parsed(FILE_HEADER + record(CREATE, 1, content))
    assert (found.path, found.data, found.ephemeral) == ("/a", b"", False)


@pytest.mark.parametrize(
    ("kind", "content", "expected"),
    [
        (15, body(CREATE), CREATE),  # create2
        (19, blob(b"/a") + blob(b"x") + OPEN_TO_ALL + struct.pack("!i", 1), LASTING),  # createContainer
        (21, blob(b"/a") + blob(b"x") + OPEN_TO_ALL + struct.pack("!iq", 1, 60_000), LASTING),  # createTTL
        (20, body(DELETE), DELETE),  # deleteContainer
    ],
)
def test_relatives_of_create_and_delete(kind: int, content: bytes, expected: Transaction) -> None:
    assert parsed(FILE_HEADER + record(expected, kind, content)) == [expected]


@pytest.mark.parametrize("kind", [7, 16])
def test_of_transactions_about_no_znode_only_the_zxid_is_kept(kind: int) -> None:
    log = FILE_HEADER + record(CREATE, kind, b"whatever") + write(DELETE)
    other, following = parsed(log)
    assert (other.kind, other.zxid, other.path) == (TransactionKind.OTHER, CREATE.zxid, "")
    assert following == DELETE


def test_errors_name_file_byte_and_reason() -> None:
    good = FILE_HEADER + write(CREATE)
    with pytest.raises(TransactionLogError, match=r"log\.1, byte 16: transaction 0x7 has type 99"):
        parsed(FILE_HEADER + record(CREATE, 99, b""))
    with pytest.raises(TransactionLogError, match=r"log\.1, byte 16: a record of .* cannot be read"):
        parsed(FILE_HEADER + record(CREATE, 1, b"\0\0\0\7/a"))
    with pytest.raises(TransactionLogError, match="begins with b'ABCD"):
        parsed(b"ABCD" + good[4:])
    broken = bytearray(good + write(DELETE))
    broken[40] ^= 1
    with pytest.raises(TransactionLogError, match="the record at byte 16 has a wrong checksum"):
        parsed(bytes(broken))
    with pytest.raises(TransactionLogError, match=f"byte {len(good)} has a length of {RECORD_LIMIT_BYTES + 1}"):
        parsed(good + struct.pack("!qi", 1, RECORD_LIMIT_BYTES + 1))
    with pytest.raises(TransactionLogError, match=r"no record at byte 16, and more behind it"):
        parsed(FILE_HEADER + b"\0" * 12 + b"something")


CLOSED = Transaction(9, 0x100, 0, 1002, TransactionKind.SESSION_CLOSED)

#: With a digest behind it and without, as `zookeeper.digest.enabled` has it.
DIGESTS = (DIGEST, b"")


def closed_record(content: bytes, digest: bytes) -> bytes:
    return FILE_HEADER + record(CLOSED, TransactionKind.SESSION_CLOSED.value, content, digest)


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("removed", [(), ("/abc",), ("/a", "/b"), ("/consumers/g/ids/ä", "/consumers/g/owners/t/0")])
def test_a_session_s_end_lists_what_goes(removed: tuple[str, ...], digest: bytes) -> None:
    (found,) = parsed(closed_record(vector(removed), digest))
    assert found == replace(CLOSED, removed=removed)


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("content", [b"", b"\xff\xff\xff\xff"])  # no body, and jute's null
def test_a_session_s_end_without_a_list_says_nothing(content: bytes, digest: bytes) -> None:
    """Of a server before 3.6, or one with closeSessionTxn disabled: not the same as an empty list."""
    assert parsed(closed_record(content, digest)) == [CLOSED]


def test_any_digest_is_told_from_a_list() -> None:
    """The upper half of the tree's digest stands where the length of a first path would."""
    for tree_digest in (0, 1, -1, (1 << 32) | 1, 2**63 - 1):
        assert parsed(closed_record(b"", struct.pack("!iq", 2, tree_digest))) == [CLOSED]


@pytest.mark.parametrize("content", [b"\0\0", vector(("/a",))[:-1], vector(("/a",)) + b"x", vector(()) + b"\0" * 8])
def test_a_list_that_is_broken_is_an_error(content: bytes) -> None:
    with pytest.raises(TransactionLogError, match=r"log\.1, byte 16: a record of .* cannot be read"):
        parsed(closed_record(content, b""))


def folder_of(tmp_path: Path, **files: bytes) -> Path:
    folder = tmp_path / "version-2"
    folder.mkdir()
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_bytes(content)
    return tmp_path


def test_files_are_read_in_the_order_of_their_zxids(tmp_path: Path) -> None:
    """log.10 is 16, after log.9; a torn end of an earlier file (the server was killed) is left."""
    torn = write(DELETE)[:-5]
    data_dir = folder_of(
        tmp_path, log_10=FILE_HEADER + write(DELETE), log_9=FILE_HEADER + write(CREATE) + torn, snapshot_0=b"other"
    )
    assert read(data_dir) == [CREATE, DELETE]


def test_following_a_file_as_it_grows(tmp_path: Path) -> None:
    data_dir = folder_of(tmp_path, log_1=b"")
    file = tmp_path / "version-2" / "log.1"
    log = TransactionLog(data_dir)
    assert log.poll() == []
    data = FILE_HEADER + write(CREATE) + write(DELETE)
    found = []
    for end in range(len(data) + 1):
        file.write_bytes(data[:end] + b"\0" * 1000)
        found.append(log.poll())
    assert [txn for poll in found for txn in poll] == [CREATE, DELETE]
    assert found[len(FILE_HEADER) + len(write(CREATE))] == [CREATE]
    assert log.poll() == []


def test_a_record_longer_than_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_log, "WINDOW_BYTES", 64)
    log = [
        Transaction(zxid, 1, zxid, 1, TransactionKind.SET, path="/a", data=bytes(size), version=zxid)
        for zxid, size in enumerate([0, 10, 1000, 3, 65536, 64, 0], 1)
    ]
    content = FILE_HEADER + b"".join(map(write, log))
    assert read(folder_of(tmp_path, log_1=content + b"\0" * 5000)) == log


def test_a_later_half_seen_first_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that races a write may miss its beginning; the second look has all of it."""
    content = FILE_HEADER + write(CREATE) + write(DELETE)
    data_dir = folder_of(tmp_path, log_1=content)
    answers = iter([content[:16] + b"\0" * 40 + content[56:], content])

    def racing(_descriptor: int, _length: int, offset: int) -> bytes:
        return next(answers)[offset:] if offset == 0 else b""

    monkeypatch.setattr(os, "pread", racing)
    assert read(data_dir) == [CREATE, DELETE]


def test_a_folder_that_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(TransactionLogError, match="version-2 is missing"):
        read(tmp_path)
    with pytest.raises(TransactionLogError, match=r"not named log\.<zxid>"):
        read(folder_of(tmp_path, log_old=b""))


# -- a live server ------------------------------------------------------------------------------


def test_the_log_of_a_live_server_is_what_its_client_did(bench: Any) -> None:
    server = bench.server
    log = TransactionLog(server.transaction_dir)
    log.poll()
    client = KazooClient(server.connect_string)
    client.start(timeout=60)
    root = bench.root
    client.create(f"{root}/a", b"one", ephemeral=True)
    client.create(f"{root}/b", b"", include_data=True)  # create2
    client.set(f"{root}/a", b"two")
    with pytest.raises(NoNodeError):
        client.delete(f"{root}/missing")
    multi = client.transaction()
    multi.check(f"{root}/a", 1)
    multi.create(f"{root}/c", b"z")
    multi.delete(f"{root}/b")
    multi.commit()
    failing = client.transaction()
    failing.create(f"{root}/d")
    failing.check(f"{root}/a", 99)
    assert isinstance(failing.commit()[1], BadVersionError)
    session_id = client.client_id[0]
    client.stop()
    client.close()
    mine = [txn for txn in log.poll() if txn.session_id == session_id]
    kind = TransactionKind
    assert [(txn.kind, txn.path, txn.data, txn.ephemeral, txn.version, txn.code) for txn in mine] == [
        (kind.SESSION_OPENED, "", b"", False, -1, 0),
        (kind.CREATE, f"{root}/a", b"one", True, -1, 0),
        (kind.CREATE, f"{root}/b", b"", False, -1, 0),
        (kind.SET, f"{root}/a", b"two", False, 1, 0),
        (kind.ERROR, "", b"", False, -1, -101),
        (kind.CHECK, f"{root}/a", b"", False, 1, 0),
        (kind.CREATE, f"{root}/c", b"z", False, -1, 0),
        (kind.DELETE, f"{root}/b", b"", False, -1, 0),
        (kind.ERROR, "", b"", False, -1, 0),  # undone
        (kind.ERROR, "", b"", False, -1, -103),
        (kind.SESSION_CLOSED, "", b"", False, -1, 0),
    ]
    assert mine[0].timeout_ms == 10_000
    assert [mine[index].zxid - mine[0].zxid for index in range(11)] == [0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 7]


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=30))
def test_a_live_log_polled_while_it_is_written(bench: Any, payloads: list[bytes]) -> None:
    """Polled after every answer, the log always holds what was answered, and nothing twice."""
    log = TransactionLog(bench.server.transaction_dir)
    log.poll()

    async def story() -> None:
        session = await bench.connected()
        polled = log.poll()
        for payload in payloads:
            reply = await session.set(bench.root, payload)
            (found,) = log.poll()
            assert (found.zxid, found.path, found.data) == (reply.zxid, bench.root, payload)
        assert [txn.kind for txn in polled if txn.session_id == session.session_id] == [TransactionKind.SESSION_OPENED]
        await session.close()

    bench.run(story)


def _end_of_a_session(bench: Any, server: EmbeddedZooKeeper) -> tuple[Transaction, list[str], list[str]]:
    """A session with three ephemeral znodes, one of them deleted, and a persistent one ends: its
    record in the log, and what another session saw below the root before and after."""

    async def story() -> tuple[int, list[str], list[str]]:
        root = bench.root
        session, outside = [await bench.connected(server.connect_string) for _ in range(2)]
        if (await outside.exists(root)).value is None:
            await outside.create(root, b"")
        for name in "cab":
            await session.create(f"{root}/{name}", b"", ephemeral=True)
        await session.create(f"{root}/lasting", b"")
        await outside.create(f"{root}/other", b"", ephemeral=True)
        await session.delete(f"{root}/a")
        before = (await outside.children(root)).value.names
        await session.close()
        after = (await outside.children(root)).value.names
        await outside.close()
        return session.session_id, list(before), list(after)

    log = TransactionLog(server.transaction_dir)
    session_id, before, after = bench.run(story)
    ends = [txn for txn in log.poll() if txn.session_id == session_id and txn.kind is TransactionKind.SESSION_CLOSED]
    assert len(ends) == 1
    return ends[0], before, after


def test_the_live_log_lists_exactly_what_vanished_with_a_session(bench: Any) -> None:
    end, before, after = _end_of_a_session(bench, bench.server)
    assert end.removed is not None
    assert sorted(end.removed) == [f"{bench.root}/{name}" for name in sorted(set(before) - set(after))]
    assert set(before) - set(after) == {"b", "c"}


def test_a_live_log_without_the_list_says_nothing_of_what_vanished(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The znodes go all the same."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dzookeeper.closeSessionTxn.enabled=false")
    with EmbeddedZooKeeper.start(tmp_path / "zk") as server:
        end, before, after = _end_of_a_session(bench, server)
    assert end.removed is None
    assert set(before) - set(after) == {"b", "c"}
