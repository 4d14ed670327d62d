"""What crosses a boundary: znode paths and payloads, byte for byte as Kafka writes them."""
