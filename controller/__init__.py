"""Controllers. `placement` chooses the brokers of a new topic's replicas; `leader_election` holds the rules by which
leaders are chosen, `partition_states` what a partition may become.

To come: election by `/controller`, fencing by epoch, replica states, and the controller's duties.
"""
