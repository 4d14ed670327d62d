"""A sweep with a figure: which pauses make a zombie, and how long it works beside its successor. Writes zombie.svg.

The session timeout is 2 s here. A pause of up to a third of it does no harm. After a longer one the client may decide
that its connection is lost. Then it waits 1 to 2 s before it connects again, as ZooKeeper's Java client does.
"""

import altair

import rebalance_lab

results = rebalance_lab.sweep("zombie", seeds=5, pause_ms=[500, 1000, 1500, 2000, 3000])
trials = results.to_pandas("trials")
trials["both_work_s"] = trials["effect_overlap_longest_us"] / 1e6
trials["pause_s"] = trials["pause_ms"] / 1e3

print(f"{len(results)} trials: {dict(results.statuses)}\n")
print(f"{'pause':>7} {'zombies':>9} {'both work, longest':>20}")
for pause_s, group in trials.groupby("pause_s"):
    print(f"{pause_s:5.1f} s {(group['both_work_s'] > 0).sum():3} of {len(group)} {group['both_work_s'].max():18.2f} s")

altair.Chart(trials, title="A zombie works beside its successor").mark_circle(size=60, opacity=0.5).encode(
    altair.X("pause_s", title="pause (s); the session lasts 2 s"),
    altair.Y("both_work_s", title="both work on a partition, longest (s)"),
).properties(width=480, height=260).save("zombie.svg")
print("\nwritten: zombie.svg")
