"""`topics`: create what members need to know of topics."""

from __future__ import annotations

from typing import Annotated

import typer

from rebalance_lab.cli.failures import Failure, spoken
from rebalance_lab.cli.options import JsonOption, ZooKeeperOption
from rebalance_lab.cli.terminal import print_json
from rebalance_lab.subjects.zk_group.live_topics import create_topic
from rebalance_lab.world.zk.connect_string import BadConnectString
from rebalance_lab.zkclient import ZkTimeoutException


def topics(
    *,
    zookeeper: ZooKeeperOption,
    create: Annotated[str, typer.Option("--create", help="The topic to create.", metavar="TOPIC")],
    partitions: Annotated[int, typer.Option("--partitions", help="Number of partitions.", min=1)],
    fixture: Annotated[
        bool, typer.Option("--fixture", help="Write the znodes of the topic and its brokers, without real brokers.")
    ] = False,
    brokers: Annotated[int, typer.Option("--brokers", help="Number of broker znodes, with ids from 0.", min=0)] = 1,
    as_json: JsonOption = False,
) -> None:
    """Create a topic. It is safe to repeat the command."""
    if not fixture:
        raise Failure(
            "--create needs brokers, which this lab does not have yet; --fixture writes the znodes without brokers"
        )
    with spoken():
        try:
            created = create_topic(zookeeper, create, partitions, brokers=brokers)
        except BadConnectString as error:
            raise Failure(f"--zookeeper {error}") from error
        except ValueError as error:
            raise Failure(f"--create {error}") from error
        except ZkTimeoutException as error:
            raise Failure(str(error)) from error
    if as_json:
        print_json({"created": created})
    else:
        print("\n".join(f"created {path}" for path in created) or "nothing to do: everything exists")
