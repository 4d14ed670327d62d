"""The same seed gives the same transactions and the same history, in any process."""

from __future__ import annotations

import os
import subprocess
import sys

STORY = """
import hashlib, sys
from rebalance_lab.history.files import digest, merge
from rebalance_lab.history.recorder import MemorySink
from rebalance_lab.kernel.simulation import Simulation
from rebalance_lab.world.errors import ZooKeeperError
from rebalance_lab.world.simulated.settings import NetworkSettings
from rebalance_lab.world.simulated.world import SimulatedWorld

seed = int(sys.argv[1])
simulation, sink = Simulation(seed), MemorySink()
world = SimulatedWorld(simulation, seed, sink, network=NetworkSettings(loss=0.005))
simulation.invariants.append(world.zookeeper.check)
kernel = simulation.kernel
processes = {actor: kernel.process(actor) for actor in ("m1", "m2", "m3")}

async def member(actor):
    environment = world.environment(actor, processes[actor])
    session = environment.zookeeper.open("simulated:2181", 2000)
    random = environment.random("paths")
    for turn in range(60):
        path = f"/{random.below(5)}"
        try:
            if random.bits(1):
                await session.create(path, actor.encode(), ephemeral=True)
            else:
                await session.delete(path)
            await session.children("/", watch=True)
            await kernel.sleep(random.below(100_000))
        except ZooKeeperError:
            continue

async def main():
    for actor, process in processes.items():
        kernel.start_root(member(actor), actor, process=process)
    await kernel.sleep(1_000_000)
    processes["m2"].pause()
    await kernel.sleep(3_000_000)
    processes["m2"].resume()
    processes["m3"].kill()
    await kernel.sleep(4_000_000)

simulation.run(main())
log = "\\n".join(map(repr, world.zookeeper.transactions))
print(len(world.zookeeper.transactions), hashlib.sha256(log.encode()).hexdigest(), digest(merge(sink.events)))
simulation.close()
"""


def story(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", STORY, str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_a_seed_is_a_history_under_any_hash_seed() -> None:
    one, same, other = story(7, "0"), story(7, "4711"), story(8, "0")
    assert one == same
    assert one != other
    assert int(one.split()[0]) > 50
