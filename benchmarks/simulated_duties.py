"""1,000 simulated trials of `duties` (claim E4), checked and written, in two processes.

Run: python benchmarks/simulated_duties.py [--trials 1000] [--runs 5] [--processes 2] [--json]
"""

import trial_sweeps

if __name__ == "__main__":
    trial_sweeps.main("1,000 simulated trials of controllers that die at their duties", "duties", {})
