"""What talks to brokers: connections, metadata, and who leads what (`cluster`)."""
