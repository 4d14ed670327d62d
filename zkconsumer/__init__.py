"""Generation one: the consumer of Kafka 0.8, which coordinates through ZooKeeper alone."""
