"""What a new controller does about `/feature` (KIP-584; `KafkaController.maybeSetupFeatureVersioning`, 2.7 to 3.9.1).

It reads the znode, and writes it if there is none or it says something else. No feature is ever finalized by that: the
brokers of these releases have none of their own in ZooKeeper mode (`BrokerFeatures.createEmpty`, 3.9.1). As in the
original no write checks the controller epoch. Other than there, a znode that another has created meanwhile is taken for
the own one, and nobody waits until the controller's own broker has read it.
"""

from __future__ import annotations

from rebalance_lab.wire.cluster import FinalizedFeatures, features_payload, read_features
from rebalance_lab.wire.paths import FEATURE
from rebalance_lab.world.errors import NoNode
from rebalance_lab.zkclient.pipelined import PipelinedClient


async def set_up_features(client: PipelinedClient, *, enabled: bool) -> None:
    """`enabled`: with inter-broker protocols from 2.7 on; before, features that were finalized are dropped. Raises
    KafkaException for what cannot be read; nobody can be the controller then."""
    try:
        found = read_features((await client.ask(lambda session: session.get(FEATURE))).value.data)
    except NoNode:
        await client.create_if_missing(FEATURE, features_payload(FinalizedFeatures(enabled=enabled)))
        return
    levels = found.levels if enabled and found.enabled else {}
    wanted = FinalizedFeatures(enabled=enabled, levels=levels)
    if wanted != found:
        await client.ask(lambda session: session.set(FEATURE, features_payload(wanted)))
