"""The log of a broker, in the files of Kafka 3.9.1."""
