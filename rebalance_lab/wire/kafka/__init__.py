"""The protocol of Kafka's clients and brokers.

Messages (`messages`, `codec`), with their headers (`frames`), and the record batches in them (`records`).
"""
