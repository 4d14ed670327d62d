"""The project's own lint: rules that ruff and import-linter do not have.

Ruff counts a function's statements and branches, not its lines, and has no limit for modules. It
does not know which names are sets, and its rule against broad handlers (BLE001) does not know
`Cancelled`. import-linter does not see imports that are written as calls.

`python -m scripts.house_lint [PATH...]` prints one line for each problem and exits 1 if there
is any. Without paths it reads the project it is called in.
"""
