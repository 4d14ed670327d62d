"""A program that is not ours as the process of one node."""

from __future__ import annotations

from rebalance_lab.roles.spec import Command, NodeSpec
from rebalance_lab.trials.stage import TrialError
from rebalance_lab.trials.stages.processes.nodes import NodeProcess
from rebalance_lab.world.process.os_process import OsProcess

#: Exit code of a JVM after SIGTERM: 128 + 15.
TERMINATED = 143


class ProgramProcess(NodeProcess):
    """`program`: started already; its log becomes the node's events. `kind`: what it is, for messages. Such a program
    takes no further nodes and no commands, unless a subclass can do more."""

    ends = NodeProcess.ends | {TERMINATED}

    def __init__(self, actor: str, kind: str, program: OsProcess) -> None:
        super().__init__([actor], program)
        self.actor = actor
        self._kind = kind

    def start(self, spec: NodeSpec) -> None:
        raise TrialError(f"{spec.actor} cannot share the process of {self.actor}, {self._kind}")

    def tell(self, command: Command) -> None:
        raise TrialError(f"{self.actor} is {self._kind} and takes no commands such as {type(command).__name__}")
