"""The port to a disk: the same stories on simulated and on real files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conformance_storage import (
    FULL_BYTES,
    LiveStorageHarness,
    SimulatedStorageHarness,
    StorageHarness,
    StorageStory,
)

from rebalance_lab.kernel import Future
from rebalance_lab.world.storage import (
    DiskFull,
    FileBusy,
    FileClosed,
    FolderNotEmpty,
    IsAFolder,
    Listing,
    NoSuchFile,
    NotAFolder,
    StorageError,
    StorageFailure,
)

OnDisk = Callable[[StorageStory], None]

#: Disks that a story is told on: what a loss of power keeps differs.
SEEDS = range(8)


@pytest.fixture(params=["simulated", "live"])
def on_disk(request: pytest.FixtureRequest, tmp_path: Path) -> OnDisk:
    def run(story: StorageStory) -> None:
        for seed in SEEDS:
            if request.param == "simulated":
                SimulatedStorageHarness(seed).run(story)
            else:
                LiveStorageHarness(seed, tmp_path / str(seed)).run(story)

    return run


async def refused(future: Future[Any], kind: type[StorageError], path: str) -> None:
    with pytest.raises(StorageError) as caught:
        await future
    assert type(caught.value) is kind
    assert caught.value.path == path


class TestFiles:
    def test_what_was_appended_is_read(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            assert file.path == "log"
            assert (await file.append(b"abc"), await file.append(b"defg")) == (0, 3)
            assert file.size == 7
            assert await file.pread(2, 3) == b"cde"
            assert await file.pread(5, 100) == b"fg"
            assert await file.pread(7, 1) == b""
            assert await file.pread(70, 1) == b""
            assert await file.pread(0, 0) == b""

        on_disk(story)

    def test_operations_on_a_file_keep_their_order(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            appended = [file.append(bytes([n]) * 10) for n in range(20)]
            cut = file.truncate(150)
            last = file.append(b"end")
            found = file.pread(145, 100)
            assert await found == bytes([14]) * 5 + b"end"
            assert [each.result() for each in appended] == list(range(0, 200, 10))
            assert cut.done
            assert last.result() == 150

        on_disk(story)

    def test_truncate_cuts_and_never_grows(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            await file.append(b"abcdef")
            await file.truncate(9)
            assert file.size == 6
            await file.truncate(2)
            assert file.size == 2
            assert await file.append(b"xy") == 2
            assert await file.pread(0, 10) == b"abxy"

        on_disk(story)

    def test_a_file_is_open_once_at_a_time(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            await file.append(b"abc")
            await refused(h.storage.open("log"), FileBusy, "log")
            await file.close()
            await file.close()
            for future in (file.pread(0, 1), file.append(b""), file.truncate(0), file.sync()):
                await refused(future, FileClosed, "log")
            again = await h.storage.open("log")
            assert again.size == 3
            assert await again.pread(0, 3) == b"abc"

        on_disk(story)

    def test_a_file_outlives_its_name(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            await file.append(b"abc")
            await h.storage.rename("log", "log.deleted")
            await file.append(b"d")
            await h.storage.delete("log.deleted")
            await file.append(b"e")
            assert await file.pread(0, 9) == b"abcde"
            other = await h.storage.open("log", create=True)
            assert other.size == 0
            await file.close()
            assert await h.storage.list() == Listing(("log",), ())

        on_disk(story)

    def test_a_full_disk_takes_all_of_an_append_or_nothing(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            h.fill("log")
            file = await h.storage.open("log", create=True)
            await refused(file.append(b"x" * (FULL_BYTES + 1)), DiskFull, "log")
            assert file.size == 0

        on_disk(story)

    def test_a_range_that_no_file_has_is_a_mistake(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            for ask in (lambda: file.pread(-1, 1), lambda: file.pread(0, -1), lambda: file.truncate(-1)):
                with pytest.raises(ValueError, match="negative"):
                    ask()

        on_disk(story)


class TestNames:
    def test_what_is_not_there(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            for path in ("log", "t-0/log"):
                await refused(h.storage.open(path), NoSuchFile, path)
                await refused(h.storage.delete(path), NoSuchFile, path)
                await refused(h.storage.rename(path, "other"), NoSuchFile, f"{path} to other")
            await refused(h.storage.open("t-0/log", create=True), NoSuchFile, "t-0/log")
            await refused(h.storage.make_folder("t-0/deep"), NoSuchFile, "t-0/deep")
            await refused(h.storage.list("t-0"), NoSuchFile, "t-0")
            await refused(h.storage.sync_folder("t-0"), NoSuchFile, "t-0")
            assert await h.storage.list() == Listing((), ())
            await h.storage.sync_folder()

        on_disk(story)

    def test_folders(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            await h.storage.make_folder("t-0")
            await h.storage.make_folder("t-0")
            await h.storage.make_folder("")
            await h.storage.open("t-0/b.log", create=True)
            await h.storage.open("t-0/a.log", create=True)
            await h.storage.make_folder("t-0/deep")
            assert await h.storage.list() == Listing((), ("t-0",))
            assert await h.storage.list("t-0") == Listing(("a.log", "b.log"), ("deep",))
            await refused(h.storage.delete("t-0"), FolderNotEmpty, "t-0")
            await h.storage.delete("t-0/deep")
            await h.storage.rename("t-0", "t-0.deleted")
            assert await h.storage.list("t-0.deleted") == Listing(("a.log", "b.log"), ())

        on_disk(story)

    def test_a_file_is_no_folder_and_the_other_way_round(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            await h.storage.make_folder("folder")
            await h.storage.open("file", create=True)
            for create in (False, True):
                await refused(h.storage.open("folder", create=create), IsAFolder, "folder")
                await refused(h.storage.open("file/deep", create=create), NotAFolder, "file/deep")
            for ask in (h.storage.make_folder, h.storage.list, h.storage.sync_folder):
                await refused(ask("file"), NotAFolder, "file")
            await refused(h.storage.make_folder("file/deep"), NotAFolder, "file/deep")

        on_disk(story)

    def test_a_rename_replaces_at_once_what_it_may(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            new = await h.storage.open("checkpoint.tmp", create=True)
            await new.append(b"new")
            old = await h.storage.open("checkpoint", create=True)
            await old.append(b"old")
            await h.storage.rename("checkpoint.tmp", "checkpoint")
            assert await h.storage.list() == Listing(("checkpoint",), ())
            await new.close()
            assert await (await h.storage.open("checkpoint")).pread(0, 9) == b"new"
            await h.storage.rename("checkpoint", "checkpoint")
            await h.storage.make_folder("full")
            await h.storage.make_folder("full/deep")
            await h.storage.make_folder("empty")
            await refused(h.storage.rename("checkpoint", "empty"), IsAFolder, "checkpoint to empty")
            await refused(h.storage.rename("empty", "checkpoint"), NotAFolder, "empty to checkpoint")
            await refused(h.storage.rename("empty", "full"), FolderNotEmpty, "empty to full")
            await refused(h.storage.rename("full/deep", "full"), FolderNotEmpty, "full/deep to full")
            await refused(h.storage.rename("full", "full/deep/er"), StorageFailure, "full to full/deep/er")
            await h.storage.rename("full", "empty")
            assert await h.storage.list() == Listing(("checkpoint",), ("empty",))
            assert await h.storage.list("empty") == Listing((), ("deep",))

        on_disk(story)

    @pytest.mark.parametrize("path", ["", "/log", "t-0//log", "t-0/", ".", "t-0/../log", ".synced-lengths", "a\0b"])
    def test_a_path_that_cannot_be_one_is_a_mistake(self, on_disk: OnDisk, path: str) -> None:
        async def story(h: StorageHarness) -> None:
            for ask in (h.storage.open, h.storage.delete):
                with pytest.raises(ValueError, match="path"):
                    ask(path)
            for old, new in ((path, "log"), ("log", path)):
                with pytest.raises(ValueError, match="path"):
                    h.storage.rename(old, new)
            for ask_folder in (h.storage.list, h.storage.make_folder, h.storage.sync_folder):
                if path:
                    with pytest.raises(ValueError, match="path"):
                        ask_folder(path)

        on_disk(story)


class TestDeath:
    def test_a_kill_loses_nothing_that_was_answered(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            await h.storage.make_folder("t-0")
            file = await h.storage.open("t-0/log", create=True)
            await file.append(b"abc")
            for _ in range(3):  # nobody waits for the answers
                file.append(b"0123456789")
            h.kill()
            again = await h.storage.open("t-0/log")
            assert 3 <= again.size <= 33
            assert await again.pread(0, 99) == (b"abc" + 3 * b"0123456789")[: again.size]

        on_disk(story)

    def test_a_loss_of_power_keeps_what_was_synced_and_a_beginning_of_the_rest(self, on_disk: OnDisk) -> None:
        lost = []

        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            await file.append(b"abc")
            await file.sync()
            await h.storage.sync_folder()
            await file.append(b"defghijkl")
            went = h.lose_power()
            again = await h.storage.open("log")
            assert await again.pread(0, 99) == b"abcdefghijkl"[: again.size]
            assert again.size == 12 - went.bytes_lost.get("log", 0) >= 3
            assert (went.proof is None) == (again.size == 12)
            assert h.lose_power().proof is None
            lost.append(12 - again.size)

        on_disk(story)
        assert {0, 9} <= set(lost)

    def test_all_that_was_synced_stays(self, on_disk: OnDisk) -> None:
        async def story(h: StorageHarness) -> None:
            await h.storage.make_folder("t-0")
            file = await h.storage.open("t-0/log.tmp", create=True)
            await file.append(b"abcdef")
            await file.truncate(4)
            await file.sync()
            await h.storage.rename("t-0/log.tmp", "t-0/log")
            await h.storage.sync_folder("t-0")
            await h.storage.sync_folder()
            assert h.lose_power().proof is None
            assert await h.storage.list("t-0") == Listing(("log",), ())
            assert await (await h.storage.open("t-0/log")).pread(0, 9) == b"abcd"

        on_disk(story)

    def test_what_a_killed_process_wrote_is_lost_with_the_power_after_it(self, on_disk: OnDisk) -> None:
        lost = []

        async def story(h: StorageHarness) -> None:
            file = await h.storage.open("log", create=True)
            await h.storage.sync_folder()
            await file.append(b"abcdef")
            h.kill()
            again = await h.storage.open("log")
            assert again.size == 6
            lost.append(h.lose_power().bytes_lost.get("log", 0))

        on_disk(story)
        assert max(lost) == 6
