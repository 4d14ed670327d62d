"""1,000 simulated zombie trials, checked and written, in two processes: medians of five.

Run: python benchmarks/simulated_zombies.py [--trials 1000] [--runs 5] [--processes 2] [--json]
"""

import trial_sweeps

if __name__ == "__main__":
    trial_sweeps.main("1,000 simulated zombie trials, checked and written", "zombie", {})
