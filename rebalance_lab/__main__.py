"""The console script, and `python -m rebalance_lab`."""

from __future__ import annotations

import signal
import sys

from rebalance_lab.cli.at_once import end_at_once_on_signals, not_loaded
from rebalance_lab.cli.streams import set_up_streams

#: The worker processes of a sweep import this module, too: Ctrl-C reaches them as well, and they end in silence.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line of this process; returns the exit code."""
    end_at_once_on_signals()
    set_up_streams()
    try:
        from rebalance_lab.cli.main import main as run  # noqa: PLC0415 - only once the signals are handled
    except Exception as error:
        return not_loaded(error)
    return run()


if __name__ == "__main__":
    sys.exit(main())
