"""Real members, as histories tell of them: from the log of Kafka 0.8.2.2 to events."""
