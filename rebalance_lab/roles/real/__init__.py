"""Real members: turns the log of Kafka 0.8.2.2 into events."""
