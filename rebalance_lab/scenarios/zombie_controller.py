"""What does a controller do that is paused, and wakes when another has been elected (claim E3)?

It was about to carry out an operation when it was paused, and carries it out when it wakes. It keeps its ZooKeeper
session, and comes to its watch of `/controller` only after that operation. `/controller` was deleted meanwhile, as
operators do it and as controllers up to 2.0 do when they give up. With `expires` its session ends during the pause.
From 1.1 on its operation fails then; that of 0.8.2 goes on in its next session. As long as its session lasts, a
controller of 0.8.2 that finds another one's `/controller` does not resign either. `moment`: what it was about to do:

- `deletion`: to delete a topic's znodes. Its successor has deleted the topic, and a client has created it anew.
- `reassignment`: to write that a partition has its new replicas. Its successor has done so, and has moved the partition
  on to others.
- `order`: to tell a broker to delete its replica of that topic.
- `election`: to raise the controller epoch, after it had created `/controller` (up to 2.0), or with it (from 2.1 on).
- `epoch`: to read the controller epoch, which it raises then. Up to 2.0 it has created `/controller` before, so it
  raises the epoch of its successor, and brokers that hear of it refuse the controller.
- `failover`: to load the cluster after its election. That fails, so it gives up.
- `rebalance`: to read which topics are to be deleted, while its look for leaders out of place waits. If its session
  ends, a controller of 0.8.2 waits for that look with the lock that the look needs, and never resigns. Nor does its
  broker register in its next session, until an operator starts it anew. The cure, `resigns_unlocked` (0.10.2): it waits
  without the lock.

Brokers of Kafka cannot be held at an operation. Their controller is paused as soon as the first of many partitions is
gone (`deletion`).

`form` is how controllers are elected and write; with `fences_writes=false` no form checks the epoch. With
`fences_orders=false` brokers obey controllers of earlier epochs. In the control the same is done, and nobody is paused.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from controller.controller import FIRST_IMBALANCE_MS
from controller.forms import ControllerForm
from rebalance_lab.broker.halting import Order
from rebalance_lab.checks.model import Outcome
from rebalance_lab.faults.kill import kill
from rebalance_lab.faults.leave import leave
from rebalance_lab.faults.pause import pause
from rebalance_lab.faults.restart import restart
from rebalance_lab.subjects.replication.expected import usual_of
from rebalance_lab.subjects.replication.subject import (
    COMMON,
    FORM,
    REPLICATED,
    BrokerNode,
    ProducerOptions,
    ReplicationLab,
    has_three_replicas,
    number_of,
    spares_a_controller,
    with_default,
)
from rebalance_lab.trials.plan import Parameter, Plan, PlanError
from rebalance_lab.trials.scenario import Scenario
from rebalance_lab.wire.cluster import reassignment_payload
from rebalance_lab.wire.paths import DELETE_TOPICS, REASSIGNMENT, partition_state_path, topic_path

#: The topic that is deleted and created anew, or gets other replicas.
TOPIC_AGAIN = "t2"

#: controller.socket.timeout.ms of brokers in a reassignment. A leader that has asked the paused controller for an ISR
#: does not ask its successor before; with Kafka's 30 s the session of the paused one would have ended.
ANSWERED_WITHIN_MS = 3_000

#: Partitions of the topic with brokers of Kafka: the controller needs some time to delete them.
MANY = 100

#: How long the trial goes on beside a zombie that does not resign: longer than one may take that does.
STAYS_MS = 8_000

#: leader.imbalance.check.interval.seconds, where leaders out of place are looked for. A controller begins after 5 s.
LOOKS_EVERY_S = 1

#: How long a controller is held before it is paused, so that such a look waits.
HELD_MS = FIRST_IMBALANCE_MS + 1_500 * LOOKS_EVERY_S

#: How often another election is tried until the broker that is to be paused takes part in one.
TRIES = 100


class Moment(StrEnum):
    """What the controller was about to do when it was paused."""

    DELETION = "deletion"
    REASSIGNMENT = "reassignment"
    ORDER = "order"
    ELECTION = "election"
    EPOCH = "epoch"
    FAILOVER = "failover"
    REBALANCE = "rebalance"


async def zombie_controller(lab: ReplicationLab) -> None:
    plan, moment = lab.plan, Moment(lab.plan.text("moment"))
    more: dict[str, Any] = {}
    if moment is Moment.REASSIGNMENT:
        more["controller_socket_timeout_ms"] = ANSWERED_WITHIN_MS
    if moment is Moment.REBALANCE:
        more["auto_leader_rebalance_enable"] = True
        more["leader_imbalance_check_interval_seconds"] = LOOKS_EVERY_S
        more["lab_resigns_under_lock"] = not plan.switch("resigns_unlocked")
    await lab.assemble(
        spare_controller=True,
        lab_halts=True,
        lab_controller_form=ControllerForm(plan.text("form")),
        lab_fences_writes=plan.switch("fences_writes"),
        lab_fences_orders=plan.switch("fences_orders"),
        **more,
    )
    lab.start("c1", ProducerOptions())
    await lab.written(1)
    lab.phase("control" if plan.control else "a zombie")
    await _MOMENTS[moment](lab)
    if _stays(plan):
        await lab.sleep_ms(STAYS_MS)
    await lab.conclude()


# -- a topic is deleted ---------------------------------------------------------------------------


async def _deletion(lab: ReplicationLab) -> None:
    if lab.plan.has_real_nodes:
        await _deleted_half(lab)
    else:
        await _deleted_again(lab, f"delete {partition_state_path(TOPIC_AGAIN, 0)}")


async def _order(lab: ReplicationLab) -> None:
    replica = lab.isr[-1]
    await _deleted_again(lab, f"StopReplica to broker {number_of(replica.actor)}")


async def _deleted_again(lab: ReplicationLab, before: str) -> None:
    """The topic is deleted and created anew; the controller is paused before an operation of its deletion."""
    controller = await lab.controlled()
    replicas = [number_of(each.actor) for each in lab.brokers if each is not controller]
    await lab.created_in_sync(TOPIC_AGAIN, replicas)
    if lab.plan.control:
        await lab.create_znode(f"{DELETE_TOPICS}/{TOPIC_AGAIN}")
        await lab.deleted(TOPIC_AGAIN)
        await lab.created_in_sync(TOPIC_AGAIN, replicas)
        return
    await lab.halt(Order(number_of(controller.actor), before=before, holds=True))
    await lab.create_znode(f"{DELETE_TOPICS}/{TOPIC_AGAIN}")
    await lab.halts()

    async def succeed() -> None:
        await _succeeded(lab, controller)
        await lab.deleted(TOPIC_AGAIN)
        await lab.created_in_sync(TOPIC_AGAIN, replicas)

    await _while_paused(lab, controller, succeed)
    await lab.forget_halt()


async def _deleted_half(lab: ReplicationLab) -> None:
    """As above with a topic of many partitions. The controller is paused when the first is gone; it is still deleting
    the others then."""
    controller = await lab.controlled()
    replicas = [number_of(each.actor) for each in lab.brokers if each is not controller]
    await lab.created_in_sync(TOPIC_AGAIN, replicas, MANY)

    async def succeed() -> None:
        left = await lab.count_children(f"{topic_path(TOPIC_AGAIN)}/partitions")
        assert left, f"the controller was paused too late: it has deleted all partitions of {TOPIC_AGAIN}"
        await lab.depose()
        await lab.deleted(TOPIC_AGAIN, MANY)
        await lab.created_in_sync(TOPIC_AGAIN, replicas, MANY)

    if lab.plan.control:
        await lab.create_znode(f"{DELETE_TOPICS}/{TOPIC_AGAIN}")
        await lab.deleted(TOPIC_AGAIN, MANY)
        await lab.created_in_sync(TOPIC_AGAIN, replicas, MANY)
        return
    fewer = await lab.children_change(f"{topic_path(TOPIC_AGAIN)}/partitions")
    await lab.create_znode(f"{DELETE_TOPICS}/{TOPIC_AGAIN}")
    await fewer
    await _while_paused(lab, controller, succeed)


# -- a partition is reassigned --------------------------------------------------------------------


async def _reassignment(lab: ReplicationLab) -> None:
    """The partition is moved by one broker, and by another one. The first move waits for a broker that is down until
    the controller has been told where to halt."""
    controller = await lab.controlled()
    nodes = [each for each in lab.brokers if each is not controller]
    first, second, third = (number_of(each.actor) for each in nodes)
    await lab.created_in_sync(TOPIC_AGAIN, [first, second])
    if lab.plan.control:
        await _move(lab, [second, third])
        await _moved(lab, [second, third])
        await _move(lab, [third, first])
        await _moved(lab, [third, first])
        return
    await leave(lab, nodes[-1])
    await _move(lab, [second, third])
    await lab.assigned(TOPIC_AGAIN, {0: (second, third, first)})
    await lab.halt(Order(number_of(controller.actor), before=f"set {topic_path(TOPIC_AGAIN)},", holds=True))
    await restart(lab, nodes[-1])
    await lab.halts()

    async def succeed() -> None:
        await _succeeded(lab, controller)
        await _moved(lab, [second, third])
        await _move(lab, [third, first])
        await _moved(lab, [third, first])

    await _while_paused(lab, controller, succeed)
    await lab.forget_halt()


async def _move(lab: ReplicationLab, replicas: list[int]) -> None:
    await lab.create_znode(REASSIGNMENT, reassignment_payload([((TOPIC_AGAIN, 0), replicas)]))


async def _moved(lab: ReplicationLab, replicas: list[int]) -> None:
    await lab.gone(REASSIGNMENT)
    await lab.all_in_sync(TOPIC_AGAIN, replicas)


# -- a controller is elected ----------------------------------------------------------------------


async def _election(lab: ReplicationLab) -> None:
    await _elected(lab, _heir(lab), "set /controller_epoch")


async def _epoch(lab: ReplicationLab) -> None:
    """Once the zombie has done what it does, a topic is created. Where brokers do not obey the controller, an operator
    has another one elected after some time."""
    zombie = _heir(lab)
    before = lab.reign(zombie)
    await _elected(lab, zombie, "get /controller_epoch")
    if _is_late(lab.plan):
        await lab.until(lambda: lab.reign(zombie) > before, "the epoch of the zombie")
        if not _stays(lab.plan):
            await lab.until(lambda: lab.resigned(zombie), "the resignation of the zombie")
    replicas = [number_of(each.actor) for each in lab.brokers[:2]]
    await lab.create(TOPIC_AGAIN, {0: replicas})
    if _is_late(lab.plan):
        await lab.sleep_ms(STAYS_MS)
        lab.phase("an operator has another controller elected")
        await lab.depose()
    await lab.all_in_sync(TOPIC_AGAIN, replicas)


async def _failover(lab: ReplicationLab) -> None:
    await _elected(lab, _heir(lab), "children /brokers/topics", fails=True)


def _heir(lab: ReplicationLab) -> BrokerNode:
    """A broker that does not control."""
    return next(each for each in lab.brokers if each is not lab.controller)


async def _elected(lab: ReplicationLab, zombie: BrokerNode, before: str, *, fails: bool = False) -> None:
    """Controllers are elected until this one halts before an operation; it is paused, and yet another elected."""
    await lab.controlled()
    if lab.plan.control:
        await lab.depose()
        return
    await lab.halt(Order(number_of(zombie.actor), before=before, holds=True, fails=fails))
    for _ in range(TRIES):
        if lab.halted:
            break
        await lab.controlled()
        await lab.depose(unless=lambda: lab.halted)
    await lab.halts()

    async def succeed() -> None:
        if lab.controller is zombie:
            await lab.depose()
        await lab.controlled(not_by=zombie)

    await _while_paused(lab, zombie, succeed)
    await lab.forget_halt()


async def _succeeded(lab: ReplicationLab, zombie: BrokerNode) -> None:
    """Another broker is the controller: the zombie's session has ended, or its `/controller` was deleted."""
    if lab.plan.switch("expires"):
        await lab.unregistered(zombie)
        await lab.controlled(not_by=zombie)
    else:
        await lab.depose()


async def _while_paused(lab: ReplicationLab, node: BrokerNode, work: Callable[[], Awaitable[object]]) -> None:
    """The node stands still for as long as the work takes."""
    stopped, over = lab.tasks.flag("the controller stands still"), lab.tasks.flag("its successor is there")
    async with lab.tasks.scope("pause of the controller") as scope:
        scope.spawn(pause(lab, node, over, stopped), "pause of the controller")
        await stopped.wait()
        await work()
        over.raise_()


# -- leaders out of place -------------------------------------------------------------------------


async def _rebalance(lab: ReplicationLab) -> None:
    """The deletion of a topic that does not exist is asked for, and the controller is held before it reads that. Then
    the request is taken back."""
    controller, request = await lab.controlled(), f"{DELETE_TOPICS}/{TOPIC_AGAIN}"
    if lab.plan.control:
        await lab.create_znode(request)
        await lab.gone(request)
        return
    await lab.halt(Order(number_of(controller.actor), before=f"children {DELETE_TOPICS},", holds=True))
    await lab.create_znode(request)
    await lab.halts()
    await lab.delete_znode(request)
    await lab.sleep_ms(HELD_MS)
    await _while_paused(lab, controller, partial(_succeeded, lab, controller))
    await lab.forget_halt()
    if _is_stuck(lab.plan):
        await lab.sleep_ms(STAYS_MS)
        lab.phase("an operator starts the zombie anew")
        await kill(lab, controller)
        await restart(lab, controller)


_MOMENTS: Mapping[Moment, Callable[[ReplicationLab], Awaitable[None]]] = {
    Moment.DELETION: _deletion,
    Moment.REASSIGNMENT: _reassignment,
    Moment.ORDER: _order,
    Moment.ELECTION: _election,
    Moment.EPOCH: _epoch,
    Moment.FAILOVER: _failover,
    Moment.REBALANCE: _rebalance,
}


#: What may be wrong as well if brokers obey the zombie, and if it has deleted a topic that is in use or written which
#: replicas that has.
_DISOBEYED = ("stale_order", "stale_role", "unequal_views")
_OF_ANOTHER_TOPIC = ("stale_role", "unequal_views")


def expects(plan: Plan) -> dict[str, Outcome | None]:
    """Without a fence at the place where the zombie acts, what it does takes effect."""
    if plan.control:
        return usual_of(plan)
    form, moment = ControllerForm(plan.text("form")), Moment(plan.text("moment"))
    fences_orders = plan.switch("fences_orders")
    if plan.switch("expires"):
        unfenced = form.outlives_sessions
    else:
        unfenced = not form.in_one_transaction or not plan.switch("fences_writes")
    # Brokers that obey any controller may hear the zombie after its successor.
    found: dict[str, Outcome | None] = {} if fences_orders else dict.fromkeys(_DISOBEYED)
    match moment:
        case Moment.DELETION | Moment.REASSIGNMENT if unfenced:
            found |= {**dict.fromkeys(_OF_ANOTHER_TOPIC), "stale_controller": Outcome.VIOLATED}
        case Moment.REASSIGNMENT if not fences_orders:
            found["stale_controller"] = None  # a broker may lead again by a state of the zombie's epoch
        case Moment.ORDER if not fences_orders:
            found["stale_order"] = Outcome.VIOLATED
        case Moment.ELECTION if form is ControllerForm.V0_8_2:
            # A broker that has not heard of the successor obeys the zombie, which reigns in an epoch of another.
            found |= {"one_winner": None, "stale_order": None, "two_controllers": Outcome.VIOLATED}
        case Moment.ELECTION if form is ControllerForm.V1_1:
            found |= {"two_controllers": Outcome.VIOLATED, "deposed_successor": Outcome.VIOLATED}
        case Moment.EPOCH if not form.in_one_transaction:
            found |= {"two_controllers": Outcome.VIOLATED, "stale_controller": Outcome.VIOLATED}
        case Moment.FAILOVER if unfenced:
            found["deposed_successor"] = Outcome.VIOLATED
        case Moment.REBALANCE if _is_stuck(plan):
            found |= {"lost_registration": Outcome.VIOLATED, "handover": Outcome.VIOLATED}
    return usual_of(plan, **(found | _of_one_that_stays(plan, moment)))


def _stays(plan: Plan) -> bool:
    """Whether the zombie does not resign when it finds its successor."""
    stays = not ControllerForm(plan.text("form")).resigns_to_a_successor
    return stays and not plan.switch("expires") and not plan.control


def _is_late(plan: Plan) -> bool:
    """Whether the zombie raises the epoch after its successor."""
    late = Moment(plan.text("moment")) is Moment.EPOCH and not plan.control
    return late and not ControllerForm(plan.text("form")).in_one_transaction


def _is_stuck(plan: Plan) -> bool:
    """Whether the zombie waits for a look for leaders out of place, which waits for it."""
    outlives = ControllerForm(plan.text("form")).outlives_sessions and plan.switch("expires")
    waits = Moment(plan.text("moment")) is Moment.REBALANCE and not plan.switch("resigns_unlocked")
    return outlives and waits and not plan.control


def _of_one_that_stays(plan: Plan, moment: Moment) -> dict[str, Outcome | None]:
    """What a zombie shows that does not. Live it is also seen at rest: there it asks ZooKeeper for something now and
    then, and so is known to be in touch."""
    if not _stays(plan):
        return {}
    if moment in (Moment.ELECTION, Moment.EPOCH):  # several brokers may be elected and stay, or none
        return {"handover": None}
    if moment is Moment.FAILOVER:
        return {"handover": None, "two_controllers": None}
    found: dict[str, Outcome | None] = {"handover": Outcome.VIOLATED, "two_controllers": None}
    obeyed = moment is Moment.ORDER and not plan.switch("fences_orders")
    return found | ({"stale_controller": Outcome.VIOLATED} if obeyed else {})


def real(plan: Plan) -> None:
    """Raises PlanError for what brokers of 3.9.1 cannot do."""
    if Moment(plan.text("moment")) is not Moment.DELETION:
        raise PlanError(
            f"moment={plan.text('moment')}: real brokers cannot be held at an operation; set it to deletion, in the "
            "middle of which they can be paused"
        )
    for name in ("fences_writes", "fences_orders"):
        if not plan.switch(name):
            raise PlanError(f"{name}=false: real brokers are those of 3.9.1, which have both fences")
    if plan.switch("expires"):
        raise PlanError("expires=true: real brokers are paused in a session that goes on; set it to false")
    if plan.text("form") != ControllerForm.V2_1:
        raise PlanError(f"form={plan.text('form')}: real brokers are those of 3.9.1, whose form is 2.1")


#: The moments at which the session may end.
_EXPIRES = (Moment.DELETION, Moment.REASSIGNMENT, Moment.REBALANCE)


def demands(plan: Plan) -> None:
    """Raises PlanError unless there are brokers enough; a reassignment goes round three. A session that expires matters
    to what is written, and to threads that wait."""
    moment = Moment(plan.text("moment"))
    if plan.switch("expires") and moment not in _EXPIRES:
        raise PlanError(f"expires=true: only with moment={', '.join(_EXPIRES)}, not with moment={moment}")
    moved = moment is Moment.REASSIGNMENT
    (has_three_replicas if moved else spares_a_controller)(plan)


SCENARIO = Scenario(
    name="zombie-controller",
    subject=REPLICATED,
    summary="a controller is paused, another is elected, and the first one goes on",
    parameters=(
        Parameter("moment", Moment.DELETION.value, "", "what it was about to do", choices=tuple(Moment)),
        FORM,
        Parameter("expires", False, "", "whether its session ends during the pause"),
        Parameter("resigns_unlocked", False, "", "the cure of rebalance: it resigns without the lock"),
        Parameter("fences_writes", True, "", "whether controllers of form 2.1 check the epoch as they write"),
        Parameter("fences_orders", True, "", "whether brokers refuse controllers of earlier epochs"),
        *with_default(COMMON, brokers=4, messages=60, pause_us=20_000, session_timeout_ms=18_000, tick_ms=2000),
    ),
    script=zombie_controller,
    expects=expects,
    demands=demands,
    claims=("E3",),
    real=real,
)
