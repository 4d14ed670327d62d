"""A process that has loaded the commands, and starts command lines by a fork: a second of imports is paid once for all.

As a script it reads requests from the descriptor of its first argument, a line of JSON each, and writes the process ids
of the command lines to the second. It is no parent of them: whoever adopts orphans is (`adopted` in test_cli_shots.py).
"""

from __future__ import annotations

import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self


@dataclass(frozen=True, slots=True)
class Started:
    """A command line that runs as a child of this process. `ended`: it becomes readable then."""

    pid: int
    ended: int

    def wait(self, within_s: float) -> int | None:
        """The exit code, negative for a signal; None if the process still runs then. Not again after an exit code."""
        if not self._has_ended(within_s):
            return None
        _, status = os.waitpid(self.pid, 0)
        os.close(self.ended)
        return os.waitstatus_to_exitcode(status)

    @property
    def has_ended(self) -> bool:
        return self._has_ended(0)

    def _has_ended(self, within_s: float) -> bool:
        waiting = select.poll()
        waiting.register(self.ended, select.POLLIN)
        return bool(waiting.poll(within_s * 1000))

    def send_signal(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self.ended, number)


class WarmStart:
    """`start` may be called by several threads."""

    def __init__(self) -> None:
        to_read, requests = os.pipe()
        answers, to_write = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(to_read), str(to_write)], pass_fds=[to_read, to_write]
        )
        os.close(to_read)
        os.close(to_write)
        self._requests, self._answers = os.fdopen(requests, "w"), os.fdopen(answers)
        self._one_at_a_time = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._requests.close()  # it ends then
        self._answers.close()
        self._process.wait()

    def start(self, arguments: Sequence[str], folder: Path, *, stdin: int, cold: bool, **environment: str) -> Started:
        """Run a command line in a folder, in whose files `out` and `err` its streams go. `stdin`: a descriptor of this
        process. `cold`: from a new Python, which loads the commands itself."""
        request = {
            "arguments": list(arguments),
            "folder": str(folder),
            "stdin": f"/proc/{os.getpid()}/fd/{stdin}",
            "cold": cold,
            "environment": environment,
        }
        with self._one_at_a_time:
            print(json.dumps(request), file=self._requests, flush=True)
            pid = int(self._answers.readline())
        return Started(pid, os.pidfd_open(pid))


def serve(requests: IO[str], answers: IO[str]) -> dict[str, Any] | None:
    """Fork for each request. In the new process it returns the request; in this one None, at their end."""
    while line := requests.readline():
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            if pid := os.fork():
                os.write(writing, str(pid).encode())
                os._exit(0)
            for each in (reading, writing):
                os.close(each)
            return dict(json.loads(line))
        os.waitpid(between, 0)
        print(os.read(reading, 100).decode(), file=answers, flush=True)
        os.close(reading)
        os.close(writing)
    return None


def become(request: dict[str, Any]) -> None:
    """Run its command line as this process, to the end."""
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    streams = (request["stdin"], os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT), ("err", os.O_WRONLY | os.O_CREAT)
    for number, (path, flags) in enumerate(streams):
        opened = os.open(path, flags, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    if request["cold"]:
        os.execv(sys.executable, [sys.executable, "-m", "rebalance_lab", *request["arguments"]])
    sys.argv = ["rebalance-lab", *request["arguments"]]
    runpy.run_module("rebalance_lab", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    from rebalance_lab.cli.main import app_of

    app_of()  # loads all commands

    _requests, _answers = (os.fdopen(int(each), mode) for each, mode in zip(sys.argv[1:], "rw", strict=True))
    with _requests, _answers:
        _request = serve(_requests, _answers)
    if _request is not None:
        become(_request)
