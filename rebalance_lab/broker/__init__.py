"""A Kafka broker of our own: its log (`log`), its replicas, and the requests that it answers (`apis`)."""
