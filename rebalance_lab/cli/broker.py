"""`broker`: one broker of the lab, in the foreground."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rebalance_lab.broker.broker import Broker, BrokerSettings, NoZooKeeper
from rebalance_lab.broker.calls import BrokerConfig
from rebalance_lab.broker.log.config import LogConfig
from rebalance_lab.broker.log.errors import FolderFailed, WrongFolder
from rebalance_lab.broker.registration import BrokerIdTaken
from rebalance_lab.broker.settings import BROKER_SETTINGS, InvalidSetting, Value, changed
from rebalance_lab.cli.brokers import Unrecorded
from rebalance_lab.cli.failures import Failure, end_by_force, must_be_writable, spoken
from rebalance_lab.cli.options import JsonOption, ZooKeeperOption, key_values
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.kernel import Flag
from rebalance_lab.kernel.interruption import LAST_RESORT_S, SIGNALS
from rebalance_lab.kernel.live import LiveKernel
from rebalance_lab.roles.connection import ConnectionStory
from rebalance_lab.trials.names import missing
from rebalance_lab.world.live.environment import live_environment
from rebalance_lab.world.network import CannotListen
from rebalance_lab.world.ports import SessionEventKind
from rebalance_lab.world.storage import StorageError
from rebalance_lab.world.zk.connect_string import BadConnectString

#: Errors with which a broker ends. Their messages are written for users.
ENDINGS = (BadConnectString, BrokerIdTaken, CannotListen, NoZooKeeper)

#: The same, of its data folder.
FOLDER_ENDINGS = (FolderFailed, StorageError, WrongFolder)

#: What is reported on stderr, and in which words.
TOLD = {
    "elected": "this broker is the controller now",
    "resigned": "this broker is not the controller any more",
    "session lost": "the ZooKeeper session has ended; a new one begins",
    "connection closed": "a connection was closed",
    "connections closed": "further connections were closed",
    "log": "",
    "warning": "",
}

#: The settings that `--set` takes. The others have options of their own, or no effect.
_OPTIONS = {
    "broker_id": "--id",
    "rack": "--rack",
    "connect": "--zookeeper",
    "session_timeout_ms": "--session-timeout-ms",
    "connection_timeout_ms": "--connection-timeout-ms",
}
SETTINGS = {name: each for name, each in BROKER_SETTINGS.items() if each.field and each.field not in _OPTIONS}

#: Which lists them.
SETTINGS_PAGE = "docs/broker.md"

#: Of the garbage collector. A controller that takes over 10,000 partitions makes tens of thousands of objects that
#: stay. With Python's own thresholds the collector looks at them several times, a tenth of the takeover's time. A first
#: threshold of 50,000 still cost some takeovers a pass of 5 ms.
GC_THRESHOLDS = (100_000, 20, 50)

BrokerSetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A setting, by Kafka's name, such as num.partitions or log.retention.ms.", metavar="NAME=VALUE"
    ),
]


def broker_configs(broker_id: int, rack: str | None, texts: Sequence[str] | None) -> tuple[BrokerConfig, LogConfig]:
    """The broker's config and that of its logs, with the values of `--set`. Raises Failure: an unknown name, or a bad
    value."""
    values: dict[str | None, Value] = {}
    for name, text in key_values(texts).items():
        if name in BROKER_SETTINGS and (option := _OPTIONS.get(BROKER_SETTINGS[name].field or "")) is not None:
            raise Failure(f"--set {name}: use the option {option} of the command broker")
        if name not in SETTINGS:
            raise Failure(missing(f"--set {name}: there is no such setting", name, SETTINGS, all_by=SETTINGS_PAGE))
        try:
            values[SETTINGS[name].field] = SETTINGS[name].read(text)
        except InvalidSetting as error:
            raise Failure(f"--set: {error}") from None
    own = {field.name: values[field.name] for field in fields(BrokerConfig) if field.name in values}
    config = msgspec.convert({"broker_id": broker_id, "rack": rack, **own}, BrokerConfig)
    if config.conflict is not None:
        raise Failure(f"--set {config.conflict}")
    return config, changed(LogConfig(), values)


def broker(
    *,
    zookeeper: ZooKeeperOption,
    data: Annotated[Path, typer.Option("--data", help="Where its logs are kept.", metavar="DIR")],
    broker_id: Annotated[int, typer.Option("--id", help="Its broker id.", min=0, max=2**31 - 1)] = 0,
    host: Annotated[
        str | None, typer.Option("--host", help="The name by which clients reach it. Default: where it listens.")
    ] = None,
    port: Annotated[int, typer.Option("--port", help="The port; 0: any free port.", min=0, max=65535)] = 0,
    session_timeout_ms: Annotated[
        int, typer.Option("--session-timeout-ms", help="zookeeper.session.timeout.ms.", min=100, max=600_000)
    ] = 18_000,
    connection_timeout_ms: Annotated[
        int, typer.Option("--connection-timeout-ms", help="zookeeper.connection.timeout.ms.", min=100, max=600_000)
    ] = 18_000,
    rack: Annotated[str | None, typer.Option("--rack", help="Its rack, for the placement of replicas.")] = None,
    set_: BrokerSetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a broker, print its address, and keep it running.

    The address is a JSON line, printed when the broker is registered. Ctrl-C
    (SIGINT) and SIGTERM shut it down cleanly. Kafka's clients can use it:
    docs/broker.md says what it serves.
    """
    with spoken():
        config, log = broker_configs(broker_id, rack, set_)
        settings = BrokerSettings(
            config=config,
            log=log,
            connect=zookeeper,
            host=host,
            port=port,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms,
        )
        try:
            _run(settings, data, as_json=as_json)
        except ENDINGS as error:
            raise Failure(str(error)) from error
        except FOLDER_ENDINGS as error:
            raise Failure(f"--data {data}: {error}") from error


def _run(settings: BrokerSettings, data: Path, *, as_json: bool) -> None:
    """Until a signal asks it to end."""
    must_be_writable(data, f"to the data folder {data}", "another with --data")
    number = settings.config.broker_id
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    with LiveKernel() as live:
        closing: Flag = live.kernel.flag("asked to end")
        _end_on_signals(live, closing, settings.config)
        environment = live_environment(f"broker-{number}", live, Unrecorded(), os.getpid(), storage=data)

        unheard: list[OSError] = []
        connection = ConnectionStory()

        def report(event: str, detail: dict[str, object]) -> None:
            if event == "registered":
                try:
                    _say_where(number, f"{detail['host']}:{detail['port']}", as_json=as_json)
                except OSError as error:  # its id would stay taken if it did not close
                    unheard.append(error)
                    closing.raise_()
            elif event == "zookeeper":
                _say_connection(connection, settings.connect, detail)
            elif event in TOLD:
                _say(": ".join(filter(None, (TOLD[event], _because(detail)))))

        live.run(Broker(environment, settings, report).run(closing), f"broker {number}")
        for error in unheard:
            raise error


def _end_on_signals(live: LiveKernel, closing: Flag, config: BrokerConfig) -> None:
    """A signal asks the broker to end. If that takes longer than it may, the process is ended, and says what the tasks
    of the broker wait for."""
    attempt_ms = config.controller_socket_timeout_ms + config.controlled_shutdown_retry_backoff_ms
    leaves_ms = config.controlled_shutdown_max_retries * attempt_ms if config.controlled_shutdown_enable else 0
    limit_s = leaves_ms / 1000 + LAST_RESORT_S

    def give_up(number: signal.Signals) -> None:
        waiting = "; ".join(f"{name} {what}" for name, what in live.kernel.waits())
        end_by_force(number, f"the broker did not end within {limit_s:g} s and was cut short ({waiting})")

    def asked(number: signal.Signals) -> None:
        closing.raise_()
        last_resort = threading.Timer(limit_s, give_up, [number])
        last_resort.daemon = True
        last_resort.start()

    for each in SIGNALS:
        live.loop.add_signal_handler(each, asked, each)


def _say_connection(story: ConnectionStory, connect: str, detail: dict[str, object]) -> None:
    if detail["connection"] == SessionEventKind.CONNECTED.value:
        told = story.connected(str(detail["session"]))
    else:
        told = story.lost(f"{connect}: it was closed, or no answer comes")
    if told is not None:
        _say(told.text)


def _say_where(number: int, address: str, *, as_json: bool) -> None:
    """Raises OSError."""
    print_json({"broker": number, "bootstrap": address, "pid": os.getpid()})
    if not as_json:
        _say(f"broker {number} serves at {address}; Ctrl-C ends it")


def _because(detail: dict[str, object]) -> str:
    """As `127.0.0.1:40123: <why>`, or `512, the last one: <why>`."""
    about = detail.get("peer") or (f"{detail['number']}, the last one" if "number" in detail else None)
    return ": ".join(str(each) for each in (about, detail.get("message") or detail.get("why")) if each)


def _say(text: str) -> None:
    print(f"rebalance-lab: {text}", file=sys.stderr, flush=True)
