"""The command line. Stdout has the answer; progress, logs and errors go to stderr.

Exit codes of all commands: 0 if every tested claim came out as expected; 1 if one did not; 2 if one is
unknown, the usage was wrong, or the command could not be carried out.
"""
