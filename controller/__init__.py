"""Controllers. `placement` chooses the brokers of a new topic's replicas; `leader_election` holds the rules by which
leaders are chosen, `states` what a partition and a replica may become.

`machine` decides what a controller does: with `elections` under way, ISRs that leaders ask for (`isr_requests`) or that
lose replicas (`isr_removals`), brokers that shut down (`shutdowns`), leaders (`wanted_elections`) and replicas
(`reassignments`) that are asked for, and topics that are deleted (`deletions`). `controller` stands for election
(`election`), in one of three `forms`; `reign` carries the decisions out on ZooKeeper.
"""
