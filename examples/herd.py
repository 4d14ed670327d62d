"""The herd in ten lines: what one joining member costs groups of different sizes, in ZooKeeper operations."""

import rebalance_lab

print("One member joins a group of Kafka 0.8.2.2 with 16 partitions (simulated):\n")
print(f"{'members before':>14} {'rebalances':>11} {'notifications':>14} {'reads':>7} {'writes':>7}")
for members in (4, 8, 16, 32):
    result = rebalance_lab.run("herd", rules="shipped", members=members, partitions=16)
    join = result.to_pandas("herd_costs").iloc[0]
    print(f"{members:14} {join.rebalances:11} {join.notifications:14} {join.reads:7} {join.writes:7}")
print("\nEvery member reads everything, so the reads grow with the square of the group.")
