"""Writes docs/api.md: every public name of Interlock with its signature and its docstring.

Read off the package that is imported, so that it cannot say anything else. `make docs` runs it.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import interlock

ROOT = Path(__file__).resolve().parent.parent
GROUPS = {
    "Servers": ("interlock.server.",),
    "Clients": ("interlock.client.", "interlock.transport.", "interlock.wire.channel"),
    "Hosts": ("interlock.host.", "interlock.models."),
    "Authorization": ("interlock.auth.", "interlock.auth.authorization_server.app"),
    "Content": ("interlock.wire.types.",),
    "Requests": ("interlock.wire.exchange",),
    "Errors": ("interlock.wire.errors",),
    "Others": ("interlock.",),
}
FURTHER = {  # what the pages use from elsewhere
    "interlock.testing": ("MemoryClient", "Script", "Transcript", "Line", "recording", "UnexpectedQuestion"),
    "interlock.state.sqlite.store": ("SQLiteStore",),
    "interlock.state.memory": ("MemoryStore",),
    "interlock.state.store": ("Bounds", "Store", "Bus"),
    "interlock.transport.http.server.app": ("Timing", "SessionBounds"),
    "interlock.transport": ("Channel", "Receiver", "serve_channel", "LineFramer", "Limits"),
}
HEAD = """\
# API

Every name of `from interlock import …`, and what the pages use from elsewhere, with its docstring. Written by
`tools/api_reference.py`; do not edit by hand.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, names in grouped().items():
        parts.append(f"## {title}\n")
        parts += [entry(name, interlock) for name in names]
    for module, names in FURTHER.items():
        parts.append(f"## From {module}\n")
        parts += [entry(name, import_module(module)) for name in names]
    return "\n".join(parts)


def grouped() -> dict[str, list[str]]:
    """Each public name in the group whose beginning fits its module best."""
    found: dict[str, list[str]] = {title: [] for title in GROUPS}
    for name in sorted(interlock.__all__, key=str.lower):
        module = getattr(getattr(interlock, name), "__module__", "")
        if not name.startswith("_"):
            found[max(GROUPS, key=lambda title: _fit(title, module))].append(name)
    return {title: names for title, names in found.items() if names}


def _fit(title: str, module: str) -> int:
    return max((len(start) for start in GROUPS[title] if module.startswith(start)), default=0)


def entry(name: str, module: ModuleType) -> str:
    value = getattr(module, name)
    lines = [f"### {name}\n", _code(_declared(name, value)), _prose(_doc(value))]
    if isinstance(value, type):
        lines += [*_fields(value), *_members(value)]
    return "\n".join(line for line in lines if line)


def _declared(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Exception):
        return f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
    return f"{'class ' if isinstance(value, type) else ''}{name}{_signature(value)}"


def _signature(value: Any) -> str:
    """Annotations as the author wrote them; long ones a parameter a line."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError, NameError):  # a hint that only type checkers can look up
        names = [each for each in getattr(value, "__struct_fields__", ()) if not each.startswith("_")]
        return f"({', '.join(names) or '…'})"
    parts = [*_parameters(signature)]
    gives = "" if signature.return_annotation is signature.empty else f" -> {_hint(signature.return_annotation)}"
    text = f"({', '.join(parts)}){gives}"
    return text if len(text) <= 100 else "(\n" + "".join(f"    {each},\n" for each in parts) + f"){gives}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    named = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not named:
            yield "*"
        named = named or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        hint = "" if each.annotation is each.empty else f": {_hint(each.annotation)}"
        default = "" if each.default is each.empty else f" = {_default(each.default)}"
        yield f"{stars}{each.name}{hint}{default}"


def _hint(annotation: Any) -> str:
    """As the author wrote it."""
    if isinstance(annotation, str):
        return annotation.strip("'")
    return inspect.formatannotation(annotation).replace("typing.", "")


def _default(value: Any) -> str:
    shown = repr(value)
    return "…" if "<" in shown or len(shown) > 60 else shown


def _doc(value: Any) -> str:
    """Its own docstring, not one that it inherits from a class of another library."""
    own = value.__dict__.get("__doc__") if isinstance(value, type) else getattr(value, "__doc__", None)
    return inspect.cleandoc(own) if isinstance(own, str) else ""


def _prose(text: str) -> str:
    """Docstrings as Markdown: what is indented stays as it is written."""
    return text.replace("::\n", ":\n") + "\n" if text else ""


def _code(text: str) -> str:
    return f"```text\n{text}\n```\n"


def _fields(value: type) -> Iterator[str]:
    """What a record holds, with the texts that stand below its fields."""
    names = [each for each in getattr(value, "__struct_fields__", ()) if not each.startswith("_")]
    about = _texts_below(value)
    for name in names:
        if name in about:
            yield f"- **`{name}`**: {about[name]}"
    if any(name in about for name in names):
        yield ""


def _texts_below(value: type) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            said = text.value.value if isinstance(text.value, ast.Constant) else None
            if isinstance(said, str):
                found[field.target.id] = " ".join(said.split())
    return found


def _members(value: type) -> Iterator[str]:
    """Public methods and properties, its own and those of classes of ours."""
    for name, member in inspect.getmembers(value):
        owner = next((base for base in value.__mro__ if name in vars(base)), value)
        if name.startswith("_") or not owner.__module__.startswith("interlock"):
            continue
        if issubclass(value, Exception) and owner is not value:
            continue  # said once, for the class that has it
        if isinstance(member, property):
            yield f"#### {value.__name__}.{name}\n\n{_prose(_doc(member)) or _code(name)}"
        elif callable(member) and not isinstance(member, type):
            yield f"#### {value.__name__}.{name}\n\n{_code(name + _signature(member))}\n{_prose(_doc(member))}"


def main() -> int:
    path = ROOT / "docs" / "api.md"
    path.write_text(page(), encoding="utf-8")
    print(f"docs/api.md: {len(interlock.__all__) - 1} names")
    return 0


if __name__ == "__main__":
    sys.exit(main())
