"""The protocol of Kafka's clients and brokers: messages (`messages`, `codec`), with their headers (`frames`)."""
