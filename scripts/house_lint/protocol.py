"""Rules for protocol code: it runs in every world, so it may know none.

Time, chance, threads and sockets come by the ports. Async generators are out because asyncio
finalises them in a task of its own. `id()`, `hash()` and the order of a set (`sets.py`) differ
from one Python process to the next, and with them the history of a seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scripts.house_lint.model import Module, Problem

#: Top-level modules that know a world: time, chance, threads, processes, sockets, servers.
FORBIDDEN = frozenset(
    {
        "_thread",
        "asyncio",
        "concurrent",
        "datetime",
        "kazoo",
        "multiprocessing",
        "os",
        "pandas",
        "pyarrow",
        "pyspark",
        "queue",
        "random",
        "sched",
        "secrets",
        "select",
        "selectors",
        "signal",
        "socket",
        "socketserver",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "uuid",
    }
)

#: Catching one of these and going on keeps a task alive that was asked to stop.
UNSWALLOWABLE = frozenset({"BaseException", "Cancelled", "Disposed", "BaseExceptionGroup"})

UNSTABLE = frozenset({"id", "hash"})


def world_import(module: Module) -> Iterator[Problem]:
    """No import of a module that knows a world, spelled in any way."""
    for node in ast.walk(module.tree):
        for name in _imported(node):
            top = name.partition(".")[0]
            if top in FORBIDDEN:
                yield _problem(module, node, "world-import", f"protocol code may not import {top}: use the ports")


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module]
    if isinstance(node, ast.Call) and _called(node) in {"__import__", "import_module"} and node.args:
        first = node.args[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return [first.value]
    return []


def async_generator(module: Module) -> Iterator[Problem]:
    """No `async def` that yields, and no generator expression that is asynchronous."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.AsyncFunctionDef) and any(
            isinstance(inner, ast.Yield) for inner in _own_nodes(node.body)
        ):
            yield _problem(
                module, node, "async-generator", f"{node.name} is an async generator: its finaliser is asyncio's"
            )
        if isinstance(node, ast.GeneratorExp) and _asynchronous(node):
            yield _problem(module, node, "async-generator", "this generator expression is asynchronous: write a list")


def _asynchronous(node: ast.GeneratorExp) -> bool:
    if any(generator.is_async for generator in node.generators):
        return True
    later = [node.elt, *(each for generator in node.generators for each in generator.ifs)]
    later += [generator.iter for generator in node.generators[1:]]  # the first is evaluated outside
    return any(isinstance(inner, ast.Await) for inner in _own_nodes(later))


def _own_nodes(roots: list[ast.stmt] | list[ast.expr]) -> Iterator[ast.AST]:
    """The nodes below `roots` that belong to the same function."""
    pending: list[ast.AST] = list(roots)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def unstable_identity(module: Module) -> Iterator[Problem]:
    """No `id()` and `hash()`, nor either handed on as a function."""
    bound = _bound_names(module.tree)
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and node.id in UNSTABLE
            and node.id not in bound
        ):
            yield _problem(
                module, node, "unstable-identity", f"{node.id}() differs from run to run: use a name or a number"
            )


def _bound_names(tree: ast.Module) -> set[str]:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def swallowed_cancel(module: Module) -> Iterator[Problem]:
    """No handler that takes a cancellation and goes on: its last statement must raise.

    `contextlib.suppress` of one is the same in other words.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise):
            if node.type is None:
                yield _problem(module, node, "swallowed-cancel", "bare except that does not end in raise")
            elif caught := _unswallowable(node.type):
                yield _problem(
                    module, node, "swallowed-cancel", f"except {caught} must end in raise: a task was asked to stop"
                )
        if isinstance(node, ast.Call) and _called(node) == "suppress":
            for argument in node.args:
                if caught := _unswallowable(argument):
                    yield _problem(module, node, "swallowed-cancel", f"suppress({caught}) hides a wish to stop")


def _unswallowable(node: ast.expr) -> str | None:
    candidates = node.elts if isinstance(node, ast.Tuple) else [node]
    for candidate in candidates:
        name = candidate.attr if isinstance(candidate, ast.Attribute) else getattr(candidate, "id", None)
        if name in UNSWALLOWABLE:
            return str(name)
    return None


def _called(node: ast.Call) -> str | None:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else None


def _problem(module: Module, node: ast.AST, rule: str, message: str) -> Problem:
    return Problem(module.name, getattr(node, "lineno", 1), rule, message)
