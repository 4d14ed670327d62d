"""Tables for other programs, and a figure from them: which settings make rebalances slow?

In a group of eight, members join and leave one by one. A member whose fetchers take a moment to stop still owns its
partitions when others claim them; these then wait for rebalance.backoff.ms and try again. This tries three back-offs
with fetchers that stop at once and after 100 ms, writes the tables of the trials, and reads them with DuckDB, as any
other program could. Writes slow.svg. Each `# %%` begins a cell for editors that run a script as a notebook.
"""

# %% Eighteen simulated trials, and their tables as Parquet.
import altair
import duckdb

import rebalance_lab

rebalance_lab.sweep(
    "herd",
    seeds=3,
    members=8,
    rebalance_backoff_ms=[500, 1000, 2000],
    fetcher_stop_ms=[0, 100],
    store="trials-for-tables",
)
published = rebalance_lab.write_tables("trials-for-tables", "tables")
print(f"{len(published.tables)} tables of {published.tables['trials'].rows} trials\n")

# %% How long each change took, until the group was at rest again.
rebalances = duckdb.sql("""
    SELECT CAST(parameters['rebalance_backoff_ms'] AS INT) AS backoff_ms,
           parameters['fetcher_stop_ms'] || ' ms' AS fetchers_stop_in,
           (end_us - begin_us) / 1e6 AS rebalance_s
    FROM 'tables/episodes/**/*.parquet' JOIN 'tables/trials/**/*.parquet' AS trials USING (trial)
    WHERE part = 'change'
    ORDER BY ALL
""").df()
print("The slowest tenth of rebalances take, in s:\n")
print(rebalances.groupby(["backoff_ms", "fetchers_stop_in"])["rebalance_s"].quantile(0.9).unstack().round(2))

# %% The figure.
altair.Chart(rebalances, title="Rebalances in a group of eight").mark_tick(thickness=2).encode(
    altair.X("rebalance_s", title="rebalance of the whole group (s)"),
    altair.Y("backoff_ms:O", title="rebalance.backoff.ms"),
    altair.Color("fetchers_stop_in", title="fetchers stop in"),
).properties(width=480, height=160).save("slow.svg")
print("\nwritten: slow.svg")
