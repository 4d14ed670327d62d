"""Members of pykafka for `group_settles`: run with the Python of an environment that has pykafka.

Reads commands from standard input, one a line: `prepare N GROUP` makes N members that know the cluster and
have not begun, `start` has all of these begin at once, `leave` stops the first that runs, `stop` all of them.
Answers each with the word `done`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from pykafka import KafkaClient

TRIES = 200


def at_once(calls: Sequence[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main(zookeeper: str, broker: str, topic: str, backoff_ms: int, retries: int) -> None:
    prepared: list[Any] = []
    running: list[Any] = []
    clients: list[KafkaClient] = []  # a consumer keeps none: it would lose its cluster

    def prepare(group: str) -> None:
        client = KafkaClient(hosts=broker)
        clients.append(client)
        for _ in range(TRIES):
            if topic.encode() in client.topics:
                break
            time.sleep(0.05)  # a new broker hears of its topics a moment after they exist
            client.update_cluster()
        member = client.topics[topic.encode()].get_balanced_consumer(
            consumer_group=group.encode(),
            zookeeper_connect=zookeeper,
            rebalance_backoff_ms=backoff_ms,
            rebalance_max_retries=retries,
            auto_start=False,
        )
        prepared.append(member)

    for line in sys.stdin:
        word, *rest = line.split()
        if word == "prepare":
            for _ in range(int(rest[0])):
                prepare(rest[1])
        elif word == "start":
            at_once([member.start for member in prepared])
            running += prepared
            prepared.clear()
        else:
            count = 1 if word == "leave" else len(running)
            at_once([member.stop for member in running[:count]])
            del running[:count]
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], *(int(each) for each in sys.argv[4:6]))  # type: ignore[arg-type]
