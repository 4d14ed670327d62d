"""Clocks compare within one boot and one time namespace only."""

from rebalance_lab.world.process.clocks import clock_of, identity


def test_processes_of_one_host_read_one_clock():
    assert clock_of(identity()) == clock_of({**identity(), "pid": 1})


def test_another_boot_or_another_time_namespace_is_another_clock():
    here = identity()
    assert clock_of({**here, "boot_id": "another"}) != clock_of(here)
    assert clock_of({**here, "time_namespace": "another"}) != clock_of(here)
