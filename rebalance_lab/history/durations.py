"""Durations as text."""

from __future__ import annotations


def seconds(length_us: int) -> str:
    """`1.250 s`. Below a millisecond `412 µs`, and below a microsecond `under 1 µs`, so that a short overlap does not
    look like none."""
    if length_us == 0:
        return "under 1 µs"
    return f"{length_us} µs" if abs(length_us) < 1000 else f"{length_us / 1_000_000:.3f} s"
