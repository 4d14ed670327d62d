"""Controllers: election by `/controller`, fencing by epoch, the partition and replica state
machines, leader selectors, placement, and the controller's duties.

Empty: this generation is not built yet. The package stands here so that its name, and the rule
that no generation imports another, are settled from the start.
"""
