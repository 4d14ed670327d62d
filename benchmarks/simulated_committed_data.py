"""1,000 simulated trials of `committed-data` (claim E6), checked and written, in two processes.

Run: python benchmarks/simulated_committed_data.py [--trials 1000] [--runs 5] [--processes 2] [--json]
"""

import trial_sweeps

if __name__ == "__main__":
    trial_sweeps.main("1,000 simulated trials of brokers that fail, checked and written", "committed-data", {})
