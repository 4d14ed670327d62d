"""What only real files can show: a loop that is not blocked, and a process that dies."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from rebalance_lab.kernel import RandomStream
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.storage import LiveStorage
from rebalance_lab.world.live.synced_lengths import lose_power
from rebalance_lab.world.storage import RESERVED_NAME, DiskFull, FolderInUse, Storage, StorageFailure

#: Writes 6 synced and 6 other bytes, renames the file, and kills itself.
KILLED = """
import os, signal, sys
from pathlib import Path
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.storage import LiveStorage

live = LiveKernel()
storage = LiveStorage(live.kernel, live.loop, Path(sys.argv[1]))

async def main():
    file = await storage.open("log.tmp", create=True)
    await file.append(b"synced")
    await file.sync()
    await file.append(b"others")
    await storage.rename("log.tmp", "log")
    os.kill(os.getpid(), signal.SIGKILL)

live.run(main())
"""


def test_the_loop_goes_on_while_a_file_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = Event()
    monkeypatch.setattr(os, "fdatasync", lambda _descriptor: go_on.wait())
    with LiveKernel() as live:
        storage = LiveStorage(live.kernel, live.loop, tmp_path)
        live.on_close(storage.close)

        async def story() -> None:
            file = await storage.open("log", create=True)
            other = await storage.open("other", create=True)
            syncing = file.sync()
            assert await other.append(b"x") == 0
            assert not syncing.done
            go_on.set()
            await syncing

        live.run(story())


def test_an_actor_without_a_folder_can_keep_no_file() -> None:
    with LiveKernel() as live:
        storage = LiveStorage(live.kernel, live.loop, None)
        live.on_close(storage.close)

        async def story(storage: Storage = storage) -> None:
            with pytest.raises(StorageFailure, match="was given no folder"):
                await storage.open("log", create=True)

        live.run(story())


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    with LiveKernel() as live:
        first, second = (LiveStorage(live.kernel, live.loop, tmp_path / "b1") for _ in range(2))
        third = LiveStorage(live.kernel, live.loop, tmp_path / "b1")
        for each in (first, second, third):
            live.on_close(each.close)

        async def story() -> None:
            await first.open("log", create=True)
            with pytest.raises(FolderInUse, match=r"b1: another process keeps its files in this folder; end it"):
                await second.list()
            first.close()
            assert (await third.list()).files == ("log",)

        live.run(story())


def test_no_file_is_made_before_one_is_needed(tmp_path: Path) -> None:
    with LiveKernel() as live:
        LiveStorage(live.kernel, live.loop, tmp_path / "b1").close()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_all_and_a_loss_of_power_what_was_synced(tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, timeout=60)
    assert killed.returncode == -9
    assert (tmp_path / "log").read_bytes() == b"syncedothers"
    record = (tmp_path / RESERVED_NAME).read_bytes()
    kept = set()
    for seed in range(20):
        with (tmp_path / "log").open("r+b") as file:  # the same inode
            file.write(b"syncedothers")
        (tmp_path / RESERVED_NAME).write_bytes(record)
        lost = lose_power(tmp_path, RandomStream(seed, "b1", "power loss"))
        left = (tmp_path / "log").read_bytes()
        assert b"syncedothers".startswith(left)
        assert lost.proof == (f"bytes lost of log: {12 - len(left)}" if len(left) < 12 else None)
        kept.add(len(left))
    assert {6, 12} < kept
    assert min(kept) == 6
    with (tmp_path / "log").open("r+b") as file:
        file.write(b"syncedothers")
    (tmp_path / RESERVED_NAME).write_bytes(record)
    lost = lose_power(tmp_path, RandomStream(1, "b1", "power loss"), everything=True)
    assert ((tmp_path / "log").read_bytes(), lost.bytes_lost) == (b"synced", {"log": 6})


def test_what_was_appended_after_a_truncation_is_not_synced(tmp_path: Path) -> None:
    kept = set()
    for seed in range(20):
        folder = tmp_path / str(seed)
        with LiveKernel() as live:
            storage = LiveStorage(live.kernel, live.loop, folder)
            live.on_close(storage.close)

            async def story(storage: Storage = storage) -> None:
                file = await storage.open("log", create=True)
                await file.append(b"0123456789")
                await file.sync()
                await file.truncate(4)
                await file.append(b"abcdef")

            live.run(story())
        lose_power(folder, RandomStream(seed, "b1", "power loss"))
        left = (folder / "log").read_bytes()
        assert b"0123abcdef".startswith(left)
        kept.add(len(left))
    assert {4, 10} < kept
    assert min(kept) == 4


def test_an_append_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    asked: list[bytes] = []

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if asked:
            raise OSError(errno.ENOSPC, "full")
        asked.append(bytes(data))
        return whole(descriptor, data[: len(data) // 2], offset)

    with LiveKernel() as live:
        storage = LiveStorage(live.kernel, live.loop, tmp_path)
        live.on_close(storage.close)

        async def story() -> None:
            file = await storage.open("log", create=True)
            await file.append(b"abc")
            with monkeypatch.context() as patched:
                patched.setattr(os, "pwrite", full)
                with pytest.raises(DiskFull):
                    await file.append(b"0123456789")
            assert asked == [b"0123456789"]
            assert (file.size, (tmp_path / "log").read_bytes()) == (3, b"abc")
            assert await file.append(b"def") == 3

        live.run(story())
    assert (tmp_path / "log").read_bytes() == b"abcdef"


def test_files_from_elsewhere_count_as_synced(tmp_path: Path) -> None:
    (tmp_path / "topic-0").mkdir()
    (tmp_path / "topic-0" / "log").write_bytes(b"abc")
    assert lose_power(tmp_path, RandomStream(1, "b1", "power loss")).proof is None
    assert lose_power(tmp_path / "nothing", RandomStream(1, "b1", "power loss")).proof is None


def test_half_a_slot_of_the_record_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"abc")
    (tmp_path / RESERVED_NAME).write_bytes(b"\1\2\3")
    assert lose_power(tmp_path, RandomStream(1, "b1", "power loss")).proof is None


#: Appends numbered records, syncs now and then, and says what was answered.
WRITER = """
import sys
from pathlib import Path
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.world.live.storage import LiveStorage

live = LiveKernel()
storage = LiveStorage(live.kernel, live.loop, Path(sys.argv[1]))

async def main():
    file = await storage.open("log", create=True)
    number = file.size // 16
    while True:
        await file.append(b"%015d\\n" % number)
        number += 1
        print("appended", number, flush=True)
        if number % 7 == 0:
            await file.sync()
            print("synced", number, flush=True)

live.run(main())
"""


@pytest.mark.slow
def test_processes_killed_at_random_lose_nothing_that_was_answered(tmp_path: Path) -> None:
    """Life after life on one file: kills, every other one with a loss of power."""
    stream = RandomStream(1, "writer", "kills")
    synced = lost = 0
    for life in range(30):
        said = {"appended": 0, "synced": 0}
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with writer:
            for _ in range(1 + stream.below(60)):
                what, number = writer.stdout.readline().split()
                said[what] = int(number)
            writer.kill()
            for line in writer.stdout:  # said before it died
                if line.endswith("\n"):
                    what, number = line.split()
                    said[what] = int(number)
        synced = max(synced, said["synced"])
        data = (tmp_path / "log").read_bytes()
        assert len(data) >= 16 * said["appended"]
        if life % 2:
            gone = lose_power(tmp_path, stream)
            data = (tmp_path / "log").read_bytes()
            lost += gone.proof is not None
            assert len(data) >= 16 * synced
            synced = len(data) // 16  # all that a loss of power left counts as synced
        with (tmp_path / "log").open("r+b") as file:  # as the recovery of a log does
            file.truncate(len(data) // 16 * 16)
        numbers = [int(line) for line in data[: len(data) // 16 * 16].split()]
        assert numbers == list(range(len(numbers)))
    assert lost > 5
