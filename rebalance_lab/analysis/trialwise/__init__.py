"""What is said of one history, in plain Python: Spark's workers call these for each trial.

They are where the order of events matters. Everything about many trials is Spark's (`tables`).
"""
