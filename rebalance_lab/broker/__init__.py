"""A Kafka broker of our own: its log (`log`)."""
