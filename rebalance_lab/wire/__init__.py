"""What crosses a boundary, byte for byte as Kafka writes it.

Znode paths and payloads, and in `kafka` the protocol of clients and brokers.
"""
