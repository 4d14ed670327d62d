"""Lengths of time as people read them."""

from __future__ import annotations


def seconds(length_us: int) -> str:
    """`1.250 s`; below a millisecond `412 µs`, so that a short overlap does not read as none; of two
    events in one microsecond `under 1 µs`."""
    if length_us == 0:
        return "under 1 µs"
    return f"{length_us} µs" if abs(length_us) < 1000 else f"{length_us / 1_000_000:.3f} s"
