"""What only a simulated disk can show: every point at which power may be lost, and when time passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_lab.kernel import Future
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.simulated.disk import SimulatedDisk
from rebalance_lab.world.simulated.storage import SimulatedStorage
from rebalance_lab.world.storage import Listing

SEEDS = range(40)

#: An append, the length of a truncation, or a sync.
steps = st.lists(st.one_of(st.binary(max_size=4), st.integers(0, 8), st.none()), max_size=12)


@given(steps=steps, seed=st.integers(0, 1000))
def test_a_loss_of_power_leaves_a_state_that_the_file_had_since_its_last_sync(
    steps: list[bytes | int | None], seed: int
) -> None:
    disk = SimulatedDisk(seed, "b1")
    file = disk.open("log", create=True)
    disk.sync_folder("")
    states = [b""]
    for step in steps:
        if isinstance(step, bytes):
            disk.append(file, "log", step)
            states += [states[-1] + step[: count + 1] for count in range(len(step))]
        elif isinstance(step, int):
            file.truncate(step)
            if step < len(states[-1]):
                states.append(states[-1][:step])
        else:
            file.sync()
            del states[:-1]
    assert file.data == states[-1]
    assert file.unsynced == len(states) - 1
    lost = disk.lose_power()
    assert bytes(file.data) in states
    assert (lost.proof is None) or len(states) > 1
    assert file.unsynced == 0


def test_a_loss_of_power_can_stop_at_every_byte() -> None:
    kept = set()
    for seed in range(200):
        disk = SimulatedDisk(seed, "b1")
        file = disk.open("log", create=True)
        disk.append(file, "log", b"abcdef")
        disk.sync_folder("")
        disk.lose_power()
        kept.add(len(file.data))
    assert kept == set(range(7))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_loss_of_everything_keeps_what_was_synced_and_nothing_else(seed: int) -> None:
    disk = SimulatedDisk(seed, "b1")
    file = disk.open("log", create=True)
    disk.sync_folder("")
    disk.append(file, "log", b"abc")
    file.sync()
    disk.append(file, "log", b"def")
    disk.open("other", create=True)
    lost = disk.lose_power(everything=True)
    assert (bytes(file.data), sorted(disk.files())) == (b"abc", ["log"])
    assert (lost.bytes_lost, lost.changes_undone) == ({"log": 3}, 1)


def states_after(*operations: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The files there may be after a loss of power that follows these operations."""
    found = set()
    for seed in SEEDS:
        disk = SimulatedDisk(seed, "b1")
        for name, *arguments in operations:
            if name == "create":
                disk.open(arguments[0], create=True)
            else:
                getattr(disk, name)(*arguments)
        disk.lose_power()
        found.add(tuple(sorted(disk.files())))
    return found


class TestNames:
    def test_creations_are_lost_from_the_last_on(self) -> None:
        assert states_after(("create", "a"), ("create", "b")) == {(), ("a",), ("a", "b")}

    def test_a_rename_is_undone_and_what_it_replaced_is_back(self) -> None:
        operations = (("create", "a"), ("create", "b"), ("sync_folder", ""), ("rename", "a", "b"))
        assert states_after(*operations) == {("b",), ("a", "b")}

    def test_a_deleted_file_is_back(self) -> None:
        assert states_after(("create", "a"), ("sync_folder", ""), ("delete", "a")) == {(), ("a",)}

    def test_the_sync_of_a_folder_is_not_that_of_the_folder_around_it(self) -> None:
        operations = (("make_folder", "t"), ("create", "t/a"), ("sync_folder", "t"))
        assert states_after(*operations) == {(), ("t/a",)}
        assert states_after(*operations, ("sync_folder", "")) == {("t/a",)}

    def test_the_sync_of_one_folder_keeps_a_move_between_two_whole(self) -> None:
        made = (("make_folder", "s"), ("make_folder", "t"), ("sync_folder", ""), ("create", "s/a"), ("create", "t/b"))
        moved = (*made, ("rename", "s/a", "t/a"))
        assert states_after(*moved) == {(), ("s/a",), ("s/a", "t/b"), ("t/a", "t/b")}
        assert states_after(*moved, ("sync_folder", "s")) == {("t/a", "t/b")}


class Host:
    """A simulation with one process that has a disk."""

    def __init__(self, seed: int = 1) -> None:
        self.simulation = Simulation(seed)
        self.kernel = self.simulation.kernel
        self.process = self.kernel.process("b1")
        self.disk = SimulatedDisk(seed, "b1")
        self.storage = SimulatedStorage(self.kernel, self.process, self.disk)


class TestTime:
    def test_operations_take_virtual_time_and_a_sync_the_most(self) -> None:
        host = Host()

        async def story() -> None:
            file = await host.storage.open("log", create=True)
            taken_us = []
            for ask in (lambda: file.append(b"x"), lambda: file.pread(0, 1), file.sync):
                began_us = host.kernel.now_us()
                await ask()
                taken_us.append(host.kernel.now_us() - began_us)
            assert 0 < max(taken_us[:2]) <= 61
            assert taken_us[2] >= 500
            began_us = host.kernel.now_us()
            await file.append(b"x" * 1_000_000)
            assert host.kernel.now_us() - began_us >= 1000

        host.simulation.run(story())

    def test_files_do_not_wait_for_each_other(self) -> None:
        host = Host()

        async def story() -> None:
            one, other = [await host.storage.open(name, create=True) for name in ("one", "other")]
            sync = one.sync()
            await other.append(b"x")
            assert not sync.done
            await sync

        host.simulation.run(story())

    def test_the_same_seed_takes_the_same_time(self) -> None:
        def ended_us(seed: int) -> int:
            host = Host(seed)

            async def story() -> None:
                file = await host.storage.open("log", create=True)
                for _ in range(10):
                    await file.append(b"x")
                    await file.sync()

            host.simulation.run(story())
            return host.kernel.now_us()

        assert ended_us(1) == ended_us(1) != ended_us(2)


class TestProcess:
    def test_a_paused_process_gets_its_answer_when_it_goes_on(self) -> None:
        host = Host()

        async def story() -> None:
            file = await host.storage.open("log", create=True)
            first, second = file.append(b"1"), file.append(b"2")
            host.process.pause()
            await host.kernel.sleep(1_000_000)
            assert (first.done, bytes(host.disk.files()["log"].data)) == (False, b"1")
            host.process.resume()
            assert await second == 1

        host.simulation.run(story())

    def test_a_kill_tears_the_append_that_it_meets_and_drops_the_rest(self) -> None:
        left = set()
        for seed in range(100):
            host = Host(seed)

            async def story(host: Host = host) -> list[Future[int]]:
                file = await host.storage.open("log", create=True)
                answers = [file.append(b"abc"), file.append(b"def")]
                host.process.kill()
                await host.kernel.sleep(1_000_000)
                return answers

            answers = host.simulation.run(story())
            assert not any(answer.done for answer in answers)
            left.add(bytes(host.disk.files()["log"].data))
        assert left == {b"", b"a", b"ab", b"abc"}

    def test_a_kill_does_not_repeat_what_was_done_while_the_process_was_paused(self) -> None:
        for seed in SEEDS:
            host = Host(seed)

            async def story(host: Host = host) -> None:
                file = await host.storage.open("log", create=True)
                file.append(b"abc")
                host.process.pause()
                await host.kernel.sleep(1_000_000)
                host.process.kill()

            host.simulation.run(story())
            assert bytes(host.disk.files()["log"].data) == b"abc"

    def test_another_life_finds_the_files(self) -> None:
        host = Host()

        async def story() -> None:
            file = await host.storage.open("log", create=True)
            await file.append(b"abc")
            host.process.kill()
            again = SimulatedStorage(host.kernel, host.kernel.process("b1"), host.disk)
            assert await again.list() == Listing(("log",), ())
            assert await (await again.open("log")).pread(0, 9) == b"abc"

        host.simulation.run(story())
