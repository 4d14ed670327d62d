"""For other projects' integration tests: a pytest plugin (the extra `testing`) with a ZooKeeper
ensemble, faults for it, and groups of ZooKeeper-era consumers. See docs/testing.md."""
