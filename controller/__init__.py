"""Controllers. `placement` chooses the brokers of a new topic's replicas.

To come: election by `/controller`, fencing by epoch, the partition and replica state machines, leader
selectors, and the controller's duties.
"""
