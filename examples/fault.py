"""A fault against your own consumer: its ZooKeeper session ends without its knowledge, and it works on for a while.

Two consumers share a topic on a real ZooKeeper, which this script starts. It needs only Java 17.
"""

import time

import rebalance_lab
import zkconsumer

SETTINGS = {"zookeeper.session.timeout.ms": 2000, "rebalance.backoff.ms": 100, "rebalance.max.retries": 40}
told: list[tuple[float, str, str, zkconsumer.Partitions]] = []


def consumer(name: str, connect: str) -> zkconsumer.Consumer:
    """Put your own here: anything with a ZooKeeper session whose id and password you know."""
    return zkconsumer.Consumer(
        connect,
        "group",
        ["orders"],
        config={**SETTINGS, "consumer.id": name},
        on_owned=lambda partitions: told.append((time.monotonic(), name, "owns", partitions)),
        on_lost=lambda partitions: told.append((time.monotonic(), name, "gave up", partitions)),
    )


def share(*consumers: zkconsumer.Consumer) -> None:
    """Wait until each owns two of the four partitions at the same time."""

    def half(owned: zkconsumer.Partitions) -> bool:
        return len(owned.get("orders", ())) == 2

    while not all(half(each.owned) for each in consumers):
        for each in consumers:
            each.wait_for(half)


with rebalance_lab.zookeeper() as zookeeper:
    rebalance_lab.create_topic(zookeeper.connect_string, "orders", partitions=4)
    with consumer("red", zookeeper.connect_string) as red, consumer("blue", zookeeper.connect_string) as blue:
        share(red, blue)
        told.clear()
        began = time.monotonic()
        rebalance_lab.ZooKeeperFaults(zookeeper).expire(*red.client_id or (0, b""))
        blue.wait_for(lambda owned: len(owned.get("orders", ())) == 4)
        red.wait_for(lambda owned: not owned)
        share(red, blue)
        after = list(told)

print("The session of red ends at 0.000 s. Then:\n")
for at, name, what, partitions in after:
    print(f"{at - began:6.3f} s  {name:4} {what:7} {', '.join(map(str, partitions['orders']))}")
taken = next(at for at, name, what, partitions in after if name == "blue" and len(partitions["orders"]) == 4)
noticed = next(at for at, name, what, _ in after if name == "red" and what == "gave up")
print(f"\nFor {noticed - taken:.3f} s both believed that they owned the partitions of red.")
