"""The role of a broker: the same in every world."""

from __future__ import annotations

from rebalance_lab.broker.broker import Broker, BrokerSettings
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.history.events import Layer, new_kind
from rebalance_lab.kernel import Flag
from rebalance_lab.roles.spec import NodeSpec, Role
from rebalance_lab.world.ports import Environment

#: What a broker reports to people: `event`, and what belongs to it.
REPORTED = new_kind("broker-reported", Layer.OP)


class BrokerSpec(NodeSpec, frozen=True, kw_only=True, tag=__name__):
    """Start data of a broker; the fields are those of `broker.broker.BrokerSettings`."""

    connect: str
    advertised_host: str
    config: BrokerConfig
    port: int = 0
    session_timeout_ms: int = 18_000
    znode_version: int = 5
    log: LogConfig = LogConfig()


async def run_broker(environment: Environment, spec: BrokerSpec, closing: Flag) -> None:
    """A broker's whole life. Raises what `Broker.run` raises."""

    def report(event: str, detail: dict[str, object]) -> None:
        environment.recorder.emit(Layer.OP, REPORTED, member=spec.actor, detail={"event": event, **detail})

    await Broker(environment, settings_of(spec), report).run(closing)


def settings_of(spec: BrokerSpec) -> BrokerSettings:
    """What the broker is started with."""
    return BrokerSettings(
        config=spec.config,
        connect=spec.connect,
        host=spec.advertised_host,
        port=spec.port,
        session_timeout_ms=spec.session_timeout_ms,
        znode_version=spec.znode_version,
        log=spec.log,
    )


ROLE = Role("broker", BrokerSpec, run_broker)
