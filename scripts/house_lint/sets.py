"""No iteration over sets in protocol code: their order changes with PYTHONHASHSEED.

A set may be asked (`in`, `len`), compared, combined and sorted. What a set is, the lint learns
from what is visible in the module: literals, comprehensions, `set()` and `frozenset()`,
set algebra, annotations of variables, parameters, `self` attributes and results. What comes
from another module without an annotation it cannot see; there the histories' hashes under two
hash seeds are the check.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from scripts.house_lint.model import Module, Problem

SET_NAMES = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
SET_METHODS = frozenset({"copy", "union", "intersection", "difference", "symmetric_difference"})
ALGEBRA = (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)

#: Callables whose result, or whose order of calls, is the order of what they are given.
ORDER_KEEPERS = frozenset({"list", "tuple", "iter", "enumerate", "map", "filter", "zip", "reversed", "deque", "reduce"})
ORDER_KEEPERS_BY_METHOD = frozenset({"join", "extend", "fromkeys", "chain", "from_iterable"})

#: Callables that take a generator in any order and answer the same.
ORDER_FREE = frozenset({"sorted", "set", "frozenset", "len", "any", "all", "sum"})

Scope = dict[str, bool]


def set_iteration(module: Module) -> Iterator[Problem]:
    """Every place where the order of a set would come to light."""
    finder = _Finder(module)
    finder.visit(module.tree)
    yield from finder.problems


class _Finder(ast.NodeVisitor):
    def __init__(self, module: Module) -> None:
        self.problems: list[Problem] = []
        self._module = module
        self._scopes: list[Scope] = [{}]
        self._attributes: list[set[str]] = [set()]
        self._functions = {
            node.name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _annotates_set(node.returns)
        }
        self._free: set[ast.AST] = set()

    # -- what is a set ----------------------------------------------------------------------

    def _is_set(self, node: ast.expr | None) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                found = True
            case ast.Name(id=name):
                found = next((scope[name] for scope in reversed(self._scopes) if name in scope), False)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found = name in self._attributes[-1]
            case ast.BinOp(op=op, left=left, right=right) if isinstance(op, ALGEBRA):
                found = any(self._is_set(side) or _is_view(side) for side in (left, right))
            case ast.IfExp(body=body, orelse=orelse):
                found = self._is_set(body) or self._is_set(orelse)
            case ast.BoolOp(values=values):
                found = any(self._is_set(value) for value in values)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                found = self._is_set(value)
            case ast.Call(func=func):
                found = self._gives_set(func)
            case _:
                found = False
        return found

    def _gives_set(self, func: ast.expr) -> bool:
        """Whether a call of `func` does."""
        match func:
            case ast.Name(id=name):
                return name in {"set", "frozenset"} or name in self._functions
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if name in self._functions:
                return True
            case ast.Attribute(value=owner, attr=name):
                return name in SET_METHODS and self._is_set(owner)
        return False

    # -- where a set is walked --------------------------------------------------------------

    def _walked(self, node: ast.expr, where: str) -> None:
        if self._is_set(node):
            message = f"{where} walks a set, whose order changes from process to process: sort it"
            self.problems.append(Problem(self._module.name, node.lineno, "set-iteration", message))

    def visit_For(self, node: ast.For) -> None:
        self._walked(node.iter, "this loop")
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._comprehension(node)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        if node not in self._free:
            for generator in node.generators:
                self._walked(generator.iter, "this comprehension")
        self.generic_visit(node)

    def visit_Starred(self, node: ast.Starred) -> None:
        self._walked(node.value, "this unpacking")
        self.generic_visit(node)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self._walked(node.value, "yield from")
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        for element in node.elts:  # {*a, *b} is a set again: no order comes to light
            self.visit(element.value if isinstance(element, ast.Starred) else element)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        keyed = any(keyword.arg == "key" for keyword in node.keywords)
        if name in ORDER_FREE or (name in {"min", "max"} and not keyed):
            self._free.update(argument for argument in node.args if isinstance(argument, ast.GeneratorExp))
        ordered = name in ORDER_KEEPERS if isinstance(node.func, ast.Name) else name in ORDER_KEEPERS_BY_METHOD
        if ordered or (name in {"min", "max"} and keyed):
            for argument in node.args:
                self._walked(argument, f"{name}()")
        if isinstance(node.func, ast.Attribute) and name == "pop" and not node.args:
            self._walked(node.func.value, "pop()")
        self.generic_visit(node)

    # -- scopes -----------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self._scopes.append({each.arg: _annotates_set(each.annotation) for each in every})
        self.generic_visit(node)
        self._scopes.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._attributes.append(_set_attributes(node))
        self._scopes.append({})
        self.generic_visit(node)
        self._scopes.pop()
        self._attributes.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._scopes[-1][node.target.id] = _annotates_set(node.annotation)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._scopes[-1][target.id] = self._is_set(node.value)
            elif isinstance(target, ast.Tuple | ast.List):
                self._walked(node.value, "this unpacking")

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self._scopes[-1][node.target.id] = self._is_set(node.value)


def _annotates_set(annotation: ast.expr | None) -> bool:
    match annotation:
        case ast.Constant(value=str(text)):
            found = _annotates_set(_annotation_of(text))
        case ast.Subscript(value=ast.Name(id="Final" | "ClassVar" | "Annotated" | "Optional"), slice=inner):
            found = _annotates_set(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
        case ast.Subscript(value=value):
            found = _annotates_set(value)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            found = _annotates_set(left) or _annotates_set(right)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            found = name in SET_NAMES
        case _:
            found = False
    return found


def _annotation_of(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _set_attributes(node: ast.ClassDef) -> set[str]:
    """Names of `self` attributes that the class shows to be sets."""
    names: set[str] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation):
                if _annotates_set(annotation):
                    names.add(name)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                if isinstance(value, ast.Set | ast.SetComp) or (
                    isinstance(value, ast.Call) and getattr(value.func, "id", "") in {"set", "frozenset"}
                ):
                    names.add(name)
    return names


def _is_view(node: ast.expr) -> bool:
    """A dict's keys() or items(): set algebra on them gives sets."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"keys", "items"}
