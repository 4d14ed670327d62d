"""House limits: a module holds one idea, a function fits a screen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scripts.house_lint.model import Module, Problem

#: The first size that is too long, in lines.
MODULE_LINES_LIMIT = 500
FUNCTION_LINES_LIMIT = 60


def module_size(module: Module) -> Iterator[Problem]:
    if module.lines >= MODULE_LINES_LIMIT:
        yield Problem(
            module.name,
            module.lines,
            "module-size",
            f"{module.lines} lines; stay below {MODULE_LINES_LIMIT}: split it by idea",
        )


def function_size(module: Module) -> Iterator[Problem]:
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines >= FUNCTION_LINES_LIMIT:
            yield Problem(
                module.name,
                node.lineno,
                "function-size",
                f"{node.name} has {lines} lines; stay below {FUNCTION_LINES_LIMIT}",
            )
