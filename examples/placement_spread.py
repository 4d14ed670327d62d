"""Where the followers of each broker's partitions are: by Kafka's rule, with a gap that never grows, and with racks.

Six brokers place a topic of sixty partitions with two replicas. If a broker fails, its followers take over, so they
should be on many brokers. This writes the tables of three simulated trials, counts followers with DuckDB, and writes
spread.svg. Each `# %%` begins a cell for editors that run a script as a notebook.
"""

# %% Three trials, and their tables as Parquet.
import altair
import duckdb

import rebalance_lab

STORE = "trials-of-placement"


def place(plant: str | None = None, racks: int = 0) -> str:
    """The id of a trial."""
    result = rebalance_lab.run("placement", plant=plant, racks=racks, brokers=6, topics=2, partitions=60, store=STORE)
    return result.trial.id


KINDS = {
    place(): "Kafka's rule",
    place(plant="keeps-shift"): "the gap never grows",
    place(racks=3): "racks 1+4, 2+5, 3+6",
}
rebalance_lab.write_tables(STORE, "tables")

# %% How many followers each broker has of each leader.
followers = duckdb.sql("""
    SELECT trial, leader.broker AS leader, follower.broker AS follower, count(*) AS followers
    FROM 'tables/placements/**/*.parquet' AS leader
    JOIN 'tables/placements/**/*.parquet' AS follower USING (trial, topic, partition)
    WHERE topic = 'placed-1' AND leader.position = 1 AND follower.position > 1
    GROUP BY ALL
""").df()
followers["kind"] = followers["trial"].map(KINDS)
for trial, kind in KINDS.items():
    table = followers[followers["trial"] == trial].pivot_table(index="leader", columns="follower", values="followers")
    print(f"{kind}: followers (columns) of each leader (rows)\n\n{table.fillna(0).astype(int).to_string()}\n")

# %% The figure.
altair.Chart(followers).mark_rect().encode(
    altair.X("follower:O", title="broker of the follower"),
    altair.Y("leader:O", title="preferred leader"),
    altair.Color("followers:Q", title="followers", scale=altair.Scale(domainMin=0)),
    altair.Column("kind:N", title=None, sort=list(KINDS.values())),
).properties(width=150, height=150).save("spread.svg")
print("written: spread.svg")
