"""Each rule of the protocol lint says no to what it is for, and yes to its neighbour."""

from __future__ import annotations

import pytest

from scripts.house_lint.model import Unreadable, parse
from scripts.house_lint.protocol import async_generator, swallowed_cancel, unstable_identity, world_import
from scripts.house_lint.sets import set_iteration

ASYNC = "async def work():\n    "


def lines(rule, text):
    return [problem.line for problem in rule(parse("zkconsumer/example.py", text))]


@pytest.mark.parametrize(
    "text",
    [
        "import asyncio",
        "import kazoo.client",
        "from time import monotonic",
        "import json, random",
        "def late():\n    import socket",
        "from concurrent.futures import Future",
        "module = __import__('threading')",
        "import importlib\nmodule = importlib.import_module('uuid')",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pyspark",
    ],
)
def test_a_world_is_not_imported(text):
    assert len(lines(world_import, text)) == 1


@pytest.mark.parametrize(
    "text", ["import json", "from rebalance_lab.kernel import Future", "from . import time", "import timeit_like"]
)
def test_other_imports_are_fine(text):
    assert lines(world_import, text) == []


@pytest.mark.parametrize(
    "text",
    [
        ASYNC + "yield 1",
        ASYNC + "if True:\n        yield",
        ASYNC + "return any(await one() for one in many)",
        ASYNC + "return list(one async for one in many)",
    ],
)
def test_async_generators_are_found(text):
    assert len(lines(async_generator, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "def plain():\n    yield 1",
        ASYNC + "def inner():\n        yield 1\n    return inner",
        ASYNC + "return [await one() for one in many]",
        ASYNC + "return (one for one in await many())",
    ],
)
def test_other_generators_are_fine(text):
    assert lines(async_generator, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "for one in {1, 2}: print(one)",
        "for one in set(many): print(one)",
        "names = frozenset(many)\nfor one in names: print(one)",
        "names: set[str] = load()\nfound = [one for one in names]",
        "def f(names: frozenset[str] | None):\n    return list(names)",
        "def f(names: 'set[str]'):\n    return tuple(names)",
        "def f(a, b):\n    return [one for one in a.keys() - b.keys()]",
        "def f(a, b):\n    both = set(a) & b\n    return ','.join(both)",
        "def f(many):\n    return {one: 1 for one in {x for x in many}}",
        "def owned() -> set[str]: ...\nfor one in owned(): print(one)",
        "class M:\n    def __init__(self):\n        self.s = set()\n    def f(self):\n        for one in self.s: ...",
        "class M:\n    names: frozenset[str]\n    def f(self):\n        return [*self.names]",
        "class M:\n    def owned(self) -> set[str]: ...\n    def f(self):\n        return list(self.owned())",
        "names = {1, 2}\nfirst = names.pop()",
        "names = {1, 2}\nfirst, second = names",
        "names = {1, 2}\nbest = max(names, key=weight)",
        "def f(many):\n    return list(names := set(many))",
        "def f(a: set[str], b: set[str]):\n    return [one for one in a.union(b)]",
        "def f(a: set[str]):\n    yield from a",
        "def f(a: set[str]):\n    queue = []\n    queue.extend(a)\n    return queue",
    ],
)
def test_the_order_of_a_set_must_not_come_to_light(text):
    assert len(lines(set_iteration, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "for one in sorted({1, 2}): print(one)",
        "names = set(many)\nnames = sorted(names)\nfor one in names: print(one)",
        "def f(names: set[str]):\n    return sorted(one for one in names if one)",
        "def f(names: set[str]):\n    return len(names), 'a' in names, max(names), any(one for one in names)",
        "def f(names: set[str]):\n    return {one + 'x' for one in names} | {*names}",
        "def f(names: dict[str, set[str]]):\n    return [one for one in names]",
        "def f(names: list[str]):\n    return [one for one in names]",
        "def f(names):\n    return names.pop()",
        "def f(names: set[str]): ...\ndef g(names: list[str]):\n    return list(names)",
        "def f(a: int, b: int):\n    return list(range(a - b))",
    ],
)
def test_other_uses_of_sets_are_fine(text):
    assert lines(set_iteration, text) == []


@pytest.mark.parametrize(
    "text",
    ["key = hash(name)", "def f(one):\n    return {id(one): one}", "names.sort(key=hash)", "table = map(id, many)"],
)
def test_identity_and_hash_are_found(text):
    assert len(lines(unstable_identity, text)) == 1


@pytest.mark.parametrize(
    "text",
    ["def f(id):\n    return id", "id = 3\nprint(id)", "class A:\n    def __hash__(self):\n        return self.id"],
)
def test_names_that_only_look_like_them_are_fine(text):
    assert lines(unstable_identity, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    go()\nexcept:\n    log()",
        "try:\n    go()\nexcept BaseException:\n    log()",
        "try:\n    go()\nexcept (OSError, Cancelled) as error:\n    keep(error)",
        "try:\n    go()\nexcept kernel.Cancelled:\n    return_later()",
        "with contextlib.suppress(Cancelled):\n    go()",
    ],
)
def test_a_swallowed_cancellation_is_found(text):
    assert len(lines(swallowed_cancel, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    go()\nexcept Exception:\n    log()",
        "try:\n    go()\nexcept BaseException:\n    log()\n    raise",
        "try:\n    go()\nexcept Cancelled as cancelled:\n    raise Closed() from cancelled",
        "with contextlib.suppress(ValueError):\n    go()",
    ],
)
def test_handlers_that_pass_it_on_are_fine(text):
    assert lines(swallowed_cancel, text) == []


def test_a_problem_reads_as_a_line_of_a_compiler():
    (problem,) = world_import(parse("zkconsumer/example.py", "x = 1\nimport time\n"))
    assert str(problem) == "zkconsumer/example.py:2: world-import: protocol code may not import time: use the ports"


def test_what_is_no_python_is_named():
    with pytest.raises(Unreadable, match=r"zkconsumer/example\.py:1: "):
        parse("zkconsumer/example.py", "def (:")
