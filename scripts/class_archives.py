"""Make the archives of classes of rebalance_lab/java.py, if they are not there: `python scripts/class_archives.py`.

Each is of what ZooKeeper and Spark load for a few short trials. It takes a minute at most and 200 MB, once for each
environment and Java. One that does not work is removed: the programs start without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from rebalance_lab.java import Program, archive, make_archive

# The rest is imported where something is made: a set-up that has nothing to do should not wait for PySpark.
# ruff: noqa: PLC0415

SIMULATED = ("zombie", "herd", "isr-election")


def use_zookeeper(folder: Path) -> None:
    from rebalance_lab.trials import api

    api.run(api.make_plan("leave", world="processes"), folder / "trials")


def use_spark(folder: Path) -> None:
    from rebalance_lab.analysis import session
    from rebalance_lab.analysis.analyse import analyse
    from rebalance_lab.analysis.ledger import read_ledger
    from rebalance_lab.analysis.published import publish
    from rebalance_lab.analysis.store import read_store
    from rebalance_lab.trials import api

    store = folder / "trials"
    for scenario in SIMULATED:
        api.run(api.make_plan(scenario, world="simulated"), store)
    with session.start() as local:
        analyse(store, spark=local.session)
        publish(local.session, read_store(store), read_ledger(), folder / "tables")


def start_zookeeper(folder: Path) -> None:
    from rebalance_lab.world.live.server_process import EmbeddedZooKeeper

    EmbeddedZooKeeper.start(folder / "data").stop()


def start_spark(folder: Path) -> None:
    from rebalance_lab.analysis import session

    session.start().stop()


#: What loads a program's classes, and what shows that it starts with their archive.
USES: dict[Program, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    Program.ZOOKEEPER: (use_zookeeper, start_zookeeper),
    Program.SPARK: (use_spark, start_spark),
}


def main() -> None:
    for program, (use, start) in USES.items():
        path = archive(program)
        if path is None:
            sys.exit("class_archives: no Java, or no PySpark: run scripts/setup first")
        if not path.exists():
            print(f"class_archives: making one for {program} (once, a minute at most)", file=sys.stderr)
            try:
                make_archive(program, path, use, start)
            except Exception as error:  # whatever it is, the programs start without
                sys.exit(f"class_archives: none for {program}, so it starts more slowly: {error}")


if __name__ == "__main__":
    main()
