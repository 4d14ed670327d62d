"""The command line. Stdout is the answer; progress, logs and errors go to stderr.

Exit codes, everywhere: 0 every claim tested came out as expected; 1 one did not; 2 unknown, or
wrong usage, or the command could not be carried out.
"""
