"""1,000 simulated split-brain trials of 10 members, checked and written, in two processes: medians of five.

Run: python benchmarks/simulated_split_brain.py [--trials 1000] [--runs 5] [--processes 2] [--json]
"""

import trial_sweeps

if __name__ == "__main__":
    trial_sweeps.main("1,000 simulated split-brain trials of 10 members", "split-brain", {"members": "10"})
