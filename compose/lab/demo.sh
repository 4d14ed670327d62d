#!/bin/sh
# What the compose file's lab does: the demo, on the ensemble beside it; more zombies, on Spark's workers;
# and a report of all. Ends as the demo and the sweep do: 0, where every claim came out as expected.
set -u

# DEMO: another command than the demo, for a quick look.
# shellcheck disable=SC2086 # its words
rebalance-lab ${DEMO:-demo} --store /trials
demo=$?
rebalance-lab sweep zombie --seeds "${SWEEP_SEEDS:-200}" --master "$SPARK_MASTER_URL" --store /trials
sweep=$?
# The report's own exit code counts claims that neither of them is about.
rebalance-lab report --store /trials --out /trials/report.html
[ -s /trials/report.html ] || exit 2
[ "$demo" -gt "$sweep" ] && exit "$demo"
exit "$sweep"
