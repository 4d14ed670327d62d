"""How the replicas of a partition stay equal: the leader's view of its followers, and what followers do."""
