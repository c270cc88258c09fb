"""How much work a JSON Schema can make, known before the first value is checked against it.

A few lines of `anyOf` and `$ref` can ask for billions of steps, and a running validator cannot be stopped. So the size
of a schema, the steps at one place of a value, and what a recursive schema doubles with every level of a value are
bounded (basic/index#composition-keyword-resource-use).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from ..errors import LocalError
from .lenient import items_of

__all__ = ["DEEPEST", "MOST_STEPS", "MOST_SUBSCHEMAS", "Effort", "depth_of", "effort_of"]

DEEPEST = 100  # levels of a schema
MOST_SUBSCHEMAS = 10_000
MOST_STEPS = 50_000  # subschemas tried on one value, every reference followed

_HERE_ONE = ("not", "if", "then", "else")
_HERE_MANY = ("allOf", "anyOf", "oneOf")
_MEMBER = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEM = ("items", "contains", "unevaluatedItems", "additionalItems")

Node = dict[str, Any]
Edge = tuple[str, Node]
"""Where in the value a subschema is applied: "" here, "/name" one member, "/" any member, "#" any item."""


class Effort(msgspec.Struct, frozen=True):
    """What checking against a schema takes."""

    steps: int
    """At one place of a value, at most."""
    growth: int
    """By how much every level of a value multiplies them: 1 but for a recursive schema that looks twice."""

    def of(self, value: Any) -> int:
        """Steps for this value, beyond what grows with its size alone."""
        return self.steps if self.growth <= 1 else self.steps * self.growth ** min(depth_of(value), 64)


def effort_of(schema: Any) -> Effort:
    """Refuses a schema that is hopeless for every value."""
    if not isinstance(schema, dict):
        return Effort(1, 1)
    graph = _Graph(cast(Node, schema))
    try:
        return Effort(graph.steps(), graph.growth())
    except RecursionError:
        raise LocalError("a schema whose references form so long a chain is not checked against") from None


def depth_of(value: Any) -> int:
    """Levels of arrays and objects in a value."""
    depth, level = 0, [value]
    while level := [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]:
        depth += 1
    return depth


def _inside(value: Any) -> list[Any]:
    return list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else cast("list[Any]", value)


class _Graph:
    """The subschemas and what each applies to the same value (in place) or to a part of it."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.named: dict[str, Node] = {}
        self.edges: dict[int, list[Edge]] = {}
        self.nodes: dict[int, Node] = {}
        self._collect(root)
        for node in self.nodes.values():
            self.edges[id(node)] = [*_edges(node), *(("", target) for target in self._targets(node))]

    def _collect(self, root: Node) -> None:
        """Every object inside is counted: a reference may point at any of them."""
        pending: list[tuple[Any, int]] = [(root, 1)]
        while pending:
            value, depth = pending.pop()
            if depth > DEEPEST:
                raise LocalError(f"a schema of more than {DEEPEST} levels is not checked against")
            if isinstance(value, dict):
                self._note(cast(Node, value))
            if isinstance(value, dict | list):
                pending += ((inner, depth + 1) for inner in _inside(value))

    def _note(self, node: Node) -> None:
        self.nodes[id(node)] = node
        if len(self.nodes) > MOST_SUBSCHEMAS:
            raise LocalError(f"a schema of more than {MOST_SUBSCHEMAS:,} parts is not checked against")
        for word in ("$anchor", "$dynamicAnchor", "$id", "id"):
            if isinstance(node.get(word), str):
                self.named.setdefault(node[word] if word.endswith("id") else f"#{node[word]}", node)

    def _targets(self, node: Node) -> Iterator[Node]:
        for word in ("$ref", "$dynamicRef", "$recursiveRef"):
            target = self._resolve(node[word]) if isinstance(node.get(word), str) else None
            if target is not None:
                yield target

    def _resolve(self, reference: str) -> Node | None:
        """What is not found here the validator refuses, or it is a meta-schema."""
        if reference in self.named:
            return self.named[reference]
        base, _, fragment = reference.partition("#")
        found: Any = self.named.get(base) if base else self.root
        if fragment and not fragment.startswith("/"):
            return self.named.get(f"#{fragment}")
        for part in fragment.split("/")[1:]:
            found = _step(found, part.replace("~1", "/").replace("~0", "~").replace("%25", "%"))
        return cast(Node, found) if isinstance(found, dict) else None

    def steps(self) -> int:
        """Count what is tried in place, with every reference followed: sharing saves space, not time."""
        known: dict[int, int] = {}
        most = max(self._steps(node, known, set()) for node in self.nodes.values())
        if most > MOST_STEPS:
            raise LocalError(f"a schema that takes more than {MOST_STEPS:,} steps for one value is not used")
        return most

    def _steps(self, node: Node, known: dict[int, int], open: set[int]) -> int:
        if id(node) in open:
            raise LocalError("a schema that refers to itself at the same place of a value never ends")
        if id(node) not in known:
            open.add(id(node))
            inner = (self._steps(target, known, open) for where, target in self.edges[id(node)] if not where)
            known[id(node)] = min(1 + sum(inner), MOST_STEPS + 1)
            open.remove(id(node))
        return known[id(node)]

    def growth(self) -> int:
        """How often a recursive schema looks at the same part of a value, for each time it looks at the whole."""
        recursive = self._recursive()
        known: dict[int, dict[str, int]] = {}
        return max((_most(self._parts(node, recursive, known)) for node in recursive.values()), default=1)

    def _recursive(self) -> dict[int, Node]:
        """What can come back to itself, or lead to something that can: what is left when, again and again, everything
        that leads nowhere is taken away. Each edge is looked at once."""
        left = {key: len(edges) for key, edges in self.edges.items()}
        back: dict[int, list[int]] = {}
        for key, edges in self.edges.items():
            for _, target in edges:
                back.setdefault(id(target), []).append(key)
        ends = [key for key, count in left.items() if not count]
        while ends:
            end = ends.pop()
            del left[end]
            for key in back.get(end, ()):
                left[key] -= 1
                if not left[key]:
                    ends.append(key)
        return {key: self.nodes[key] for key in left}

    def _parts(self, node: Node, recursive: dict[int, Node], known: dict[int, dict[str, int]]) -> dict[str, int]:
        """The recursive subschemas for each part of a value, with what applies in place counted in."""
        counted = known.get(id(node))
        if counted is None:
            counted = known[id(node)] = {}
            for where, target in self.edges[id(node)]:
                inside = {where: int(id(target) in recursive)} if where else self._parts(target, recursive, known)
                for place, count in inside.items():
                    counted[place] = counted.get(place, 0) + count
        return counted


def _most(parts: dict[str, int]) -> int:
    """What applies to any member meets what applies to one of them; members and items never meet."""
    members = max((count for where, count in parts.items() if where.startswith("/") and where != "/"), default=0)
    items = max((count for where, count in parts.items() if where.startswith("#") and where != "#"), default=0)
    return max(members + parts.get("/", 0), items + parts.get("#", 0), 1)


def _edges(node: Node) -> Iterator[Edge]:
    for word, value in node.items():
        if word in _HERE_ONE:
            yield from _subschemas("", [value])
        elif word in _HERE_MANY:
            yield from _subschemas("", value)
        elif word == "dependentSchemas" and isinstance(value, dict):
            yield from _subschemas("", _inside(value))
        elif word == "properties" and isinstance(value, dict):
            for name, member in cast(Node, value).items():
                yield from _subschemas(f"/{name}" if name else "/ ", [member])
        elif word == "patternProperties" and isinstance(value, dict):
            yield from _subschemas("/", _inside(value))
        elif word in _MEMBER:
            yield from _subschemas("/", [value])
        elif word in _ITEM or word == "prefixItems":
            yield from _positions(value) if isinstance(value, list) else _subschemas("#", [value])


def _positions(items: Any) -> Iterator[Edge]:
    for position, item in enumerate(items):
        yield from _subschemas(f"#{position}", [item])


def _subschemas(where: str, values: Any) -> Iterator[Edge]:
    for value in items_of(values):
        if isinstance(value, dict):
            yield where, cast(Node, value)


def _step(value: Any, part: str) -> Any:
    if isinstance(value, dict):
        return cast(Node, value).get(part)
    if isinstance(value, list) and part.isdigit() and int(part) < len(cast("list[Any]", value)):
        return cast("list[Any]", value)[int(part)]
    return None
