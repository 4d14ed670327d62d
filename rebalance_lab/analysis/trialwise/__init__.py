"""What is reported of one history, in plain Python: Spark's workers call it for each trial, because the order of its
events matters. Everything about many trials is Spark's (`tables`)."""
