"""Warnings of Kafka's consumers that checks look for."""

#: A rebalance that finds no broker gives nothing up, and ends (ZKRebalancerListener.rebalance, Kafka 0.8.2).
NO_BROKERS = "no brokers found when trying to rebalance."
