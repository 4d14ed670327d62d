"""A subject whose nodes keep a file: each life reads it, records how long it is, and adds two halves, of which it syncs
the first."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.power_loss import lose_power
from rebalance_lab.faults.restart import restart
from rebalance_lab.history.events import Layer, new_kind
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.trials.lab import AnyLab, Lab
from rebalance_lab.trials.plan import WORLD_PARAMETERS, Plan
from rebalance_lab.trials.scenario import Scenario, usual
from rebalance_lab.trials.stage import NodeOptions
from rebalance_lab.trials.subject import Subject
from rebalance_lab.world.ports import Environment

#: Bytes that each life adds and syncs, and that it adds and does not sync.
HALF_BYTES = 1000

#: What a life has found: how long its file was.
FOUND = new_kind("notebook-found", Layer.EFFECT)


class NotebookSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    connect: str
    session_timeout_ms: int


async def run(environment: Environment, spec: NotebookSpec, closing: Flag) -> None:
    await environment.storage.make_folder("notes")
    file = await environment.storage.open("notes/log", create=True)
    detail: dict[str, object] = {"size": file.size}
    environment.recorder.emit(Layer.EFFECT, FOUND, member=environment.actor, detail=detail)
    await file.append(b"x" * HALF_BYTES)
    await file.sync()
    await environment.storage.sync_folder("notes")
    await environment.storage.sync_folder()
    await file.append(b"y" * HALF_BYTES)
    session = environment.zookeeper.open(spec.connect, spec.session_timeout_ms)
    await closing.wait()
    await session.close()


ROLE = Role("notebook", NotebookSpec, run)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookOptions(NodeOptions):
    def spec(self, plan: Plan, actor: str, *, connect: str, events: str) -> NotebookSpec:
        timeout_ms, seed = plan.number("session_timeout_ms"), plan.seed
        return NotebookSpec(
            actor=actor, host=actor, seed=seed, events=events, connect=connect, session_timeout_ms=timeout_ms
        )


SUBJECT = Subject(name="notebook", rules=("plain",), lab=Lab)


async def script(lab: AnyLab) -> None:
    await lab.connected()
    nodes = [lab.start(f"n{number}", NotebookOptions()) for number in (1, 2)]
    for node in nodes:
        await lab.until(lambda node=node: node.started, "the first life")  # type: ignore[misc]
    for node in nodes:
        await kill(lab, node)
    await lose_power(lab, nodes[0])
    for node in nodes:
        await restart(lab, node)
    await lab.rest("two lives")
    await lab.close()


SCENARIO = Scenario(
    "notebooks", SUBJECT, "two notebooks", tuple(WORLD_PARAMETERS.values()), script, lambda _: usual("notebook")
)
