"""Whether two worlds agree: compares what was measured in them, as distributions (without Spark).

- `measures`: the table of what is compared, and how it is read from a history.
- `causes`: the table of causes that may explain a difference, declared beforehand.
- `statistics`: two samples and a band around one of them.
- `verdicts`: the verdict of each measure.
"""
