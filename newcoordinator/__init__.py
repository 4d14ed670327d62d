"""Coordinators: the 0.9 proposal, JoinGroup and SyncGroup with eager and cooperative
rebalancing, the consumer group protocol of KIP-848, and Kafka Connect's.

Empty: these generations are not built yet. The package stands here so that its name, and the
rule that no generation imports another, are settled from the start.
"""
