"""A broker that is to close asks the controller to move what it leads (`KafkaServer.controlledShutdown`, 3.9.1)."""

from __future__ import annotations

from collections.abc import Callable

from controller.channels import Undelivered
from controller.cluster import LiveBroker
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.control_link import ControlLinks
from rebalance_lab.broker.server import Report
from rebalance_lab.kernel import Kernel
from rebalance_lab.wire.kafka.error_codes import ErrorCode
from rebalance_lab.wire.kafka.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse


async def ask_to_leave(
    tasks: Kernel,
    links: ControlLinks,
    config: BrokerConfig,
    request: ControlledShutdownRequest,
    controller: Callable[[], LiveBroker | None],
    report: Report,
) -> None:
    """Ask until nothing is left, at most controlled.shutdown.max.retries times. Then the broker closes in any case.
    `controller()`: where it listens; None while it is not known."""
    for asked in range(config.controlled_shutdown_max_retries):
        if asked:
            await tasks.sleep(config.controlled_shutdown_retry_backoff_ms * 1000)
        why = await _refusal(links, request, controller())
        if why is None:
            report("left", {"asked": asked + 1})
            return
        report("warning", {"message": f"the broker cannot leave its partitions to others yet: {why}"})
    report("warning", {"message": "the broker closes though the controller has not moved all that it leads"})


async def _refusal(
    links: ControlLinks, request: ControlledShutdownRequest, controller: LiveBroker | None
) -> str | None:
    """Why the broker should not close yet; None if it may."""
    if controller is None:
        return "no controller is known"
    try:
        response = await links.deliver(controller, request)
    except Undelivered as error:
        return f"broker {controller.broker_id}, the controller, does not answer: {error}"
    assert isinstance(response, ControlledShutdownResponse)
    if response.error_code:
        return f"broker {controller.broker_id}, the controller, answers {ErrorCode(response.error_code).name}"
    left = [f"{each.topic_name}-{each.partition_index}" for each in response.remaining_partitions]
    if not left:
        return None
    shown = ", ".join(left[:3]) + (", …" if len(left) > 3 else "")
    return f"no other in-sync replica is live of {len(left)} partitions that it leads: {shown}"
