"""Whether worlds agree: what was measured in one, beside another, as distributions (no Spark).

- `measures`: the table of what is compared, and how it is read from a history.
- `causes`: the table of what a difference may be explained by, declared beforehand.
- `statistics`: two samples and a band around one of them.
- `verdicts`: what is said of each measure.
"""
