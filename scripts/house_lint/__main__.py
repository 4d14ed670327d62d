"""`python -m scripts.house_lint [PATH...]`: exit 0 clean, 1 problems, 2 unreadable."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts.house_lint.model import Unreadable
from scripts.house_lint.rooms import files_of, lint


def main(arguments: list[str]) -> int:
    root = Path.cwd()
    paths = [(root / argument).resolve() for argument in arguments]
    for path in paths:
        if not path.exists() or not path.is_relative_to(root.resolve()):
            print(f"lint: {path} does not exist below {root}", file=sys.stderr)
            return 2
    try:
        problems = lint(root.resolve(), paths)
    except Unreadable as error:
        print(f"lint: {error}", file=sys.stderr)
        return 2
    for problem in problems:
        print(problem)
    count = len(files_of(root.resolve(), paths))
    print(f"{len(problems)} problems in {count} files" if problems else f"{count} files keep the house's rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
