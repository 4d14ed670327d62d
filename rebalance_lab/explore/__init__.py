"""All schedules of a small replicated partition: an explicit-state model checker over the broker's own rules."""
