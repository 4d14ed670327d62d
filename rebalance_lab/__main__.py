"""The console script, and `python -m rebalance_lab`."""

from __future__ import annotations

import signal
import sys

#: Loading the commands takes most of a second. A signal ends the process at once until then: there is nothing to undo.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    from rebalance_lab.cli.main import main as run  # noqa: PLC0415

    return run()


if __name__ == "__main__":
    sys.exit(main())
