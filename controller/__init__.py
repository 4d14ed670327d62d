"""Controllers. `placement` chooses the brokers of a new topic's replicas; `leader_election` holds the rules by which
leaders are chosen, `states` what a partition and a replica may become.

`machine` decides what a controller does: with `elections` under way, ISRs that leaders ask for (`isr_requests`) or that
lose replicas (`isr_removals`), brokers that shut down (`shutdowns`), and topics that are deleted (`deletions`).
`controller` stands for election (`election`); `reign` carries the decisions out on ZooKeeper.

To come: preferred leaders, reassignment, and the forms of 0.8.2 and 1.1.
"""
