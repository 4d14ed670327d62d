"""Members of pykafka for `group_settles`: run with the Python of an environment that has pykafka.

Reads commands from standard input, a word and perhaps a number a line: `start N` starts N members at
once, `join` one more, `leave` stops the first. Answers each with the word `done`.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from pykafka import KafkaClient

TRIES = 200


def main(zookeeper: str, broker: str, group: str, topic: str, backoff_ms: int, retries: int) -> None:
    running: list[Any] = []
    clients: list[KafkaClient] = []  # a consumer keeps none: it would lose its cluster

    def start() -> None:
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
        running.append(member)
        member.start()

    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        if word == "leave":
            running.pop(0).stop()
        else:
            threads = [threading.Thread(target=start) for _ in range(int(number) if number else 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], *(int(each) for each in sys.argv[5:7]))
