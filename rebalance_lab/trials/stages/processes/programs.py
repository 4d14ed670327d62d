"""A program that is not ours as the process of one node (`nodes.Host`)."""

from __future__ import annotations

import signal
import subprocess
from typing import ClassVar

from rebalance_lab.roles.spec import Command, NodeSpec
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.nodes import END_LIMIT_S
from rebalance_lab.world.process.os_process import OsProcess

#: Exit code of a JVM after SIGTERM: 128 + 15.
TERMINATED = 143


class ProgramHost:
    """`program`: started already; its log becomes the node's events. `kind`: what it is, for messages. Such a program
    takes no further nodes and no commands, and has one life, unless a subclass can do more."""

    #: How it may end once it may.
    ends: ClassVar[frozenset[int]] = frozenset({0, TERMINATED, -signal.SIGKILL})

    def __init__(self, actor: str, kind: str, program: OsProcess) -> None:
        self.name = actor
        self.nodes = [actor]
        self.may_end = False
        self._kind = kind
        self._program = program

    @property
    def popen(self) -> subprocess.Popen[bytes]:
        return self._program.popen

    @property
    def pid(self) -> int:
        return self._program.pid

    def start(self, spec: NodeSpec) -> None:
        raise TrialError(f"{spec.actor} cannot share the process of {self.name}, {self._kind}")

    def tell(self, command: Command) -> None:
        raise TrialError(f"{self.name} is {self._kind} and takes no commands such as {type(command).__name__}")

    def start_again(self) -> None:
        raise TrialError(f"{self.name} is {self._kind}: it has no second life under its name; start another node")

    def check(self) -> None:
        """Raise TrialError if the process ended without being asked to, or ended badly."""
        code = self.popen.poll()
        if code is not None and (not self.may_end or code not in self.ends):
            raise TrialError(f"{self.name} (pid {self.pid}) ended with {code}; it wrote:\n{self._program.tail()}")

    def wait(self) -> None:
        """Wait until the process ends, a moment after the node has left. Raises TrialError."""
        try:
            self.popen.wait(timeout=END_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise TrialError(f"{self.name} left, and its process {self.pid} did not end") from None
        self.check()

    def end(self) -> None:
        """Kill it if it still runs (only after a failure), and reap it."""
        self._program.kill()
