"""`python -m rebalance_lab.world.containers.reaper SESSION`: waits for the end of its standard
input, which comes with the end of the process that holds the other side, however it ends, and then
removes what the session has left behind; unless that process has said that it did."""

from __future__ import annotations

import sys


def main(session: str) -> None:
    """Wait, then remove. Docker is loaded only then: mostly nothing is left to do."""
    if sys.stdin.buffer.read():
        return
    from rebalance_lab.world.containers.engine import reap  # noqa: PLC0415

    reap(session)


if __name__ == "__main__":
    main(sys.argv[1])
