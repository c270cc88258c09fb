"""Wrong frames by the thousand: every call a client may send, damaged at every field, judged by the oracle.

    for mutation in mutations("2025-06-18", "tools/call"):
        send(mutation.frame_bytes)      # mutation.expectation says what the schema thinks of it

The instances that get damaged are generated from the revision's own schema. They name one tool, one prompt
and one resource (``ANCHORS``), so that a test server can offer exactly these.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from support.instances import NO_HINT, Instances, Path
from support.schemas import Oracle, SchemaViolation, Sender

__all__ = ["ANCHORS", "Mutation", "all_mutations", "methods", "mutations", "sample", "valid_frames"]

Expectation = Literal["valid", "invalid"]
Reply = Literal["required", "forbidden", "open"]

TOOL, PROMPT, RESOURCE = "echo", "greet", "note://one"
ANCHORS: dict[tuple[str, str], Any] = {
    ("tools/call", "name"): TOOL,
    ("prompts/get", "name"): PROMPT,
    ("resources/read", "uri"): RESOURCE,
    ("resources/subscribe", "uri"): RESOURCE,
    ("resources/unsubscribe", "uri"): RESOURCE,
}
VERSION_MEMBERS = {"protocolVersion", "io.modelcontextprotocol/protocolVersion"}

REQUEST_ID = 7
DEEP = 64  # well below any sane limit on depth: the kind is wrong, not the size
LONG_INTEGER = "9" * 400
LONG_STRING = "i" * 20_000
LIMITED = "limit"  # marks labels of frames that are fine but for their size


def deep_list() -> list[Any]:
    value: list[Any] = []
    for _ in range(DEEP):
        value = [value]
    return value


WRONG_KINDS: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "fraction": 1.5,
    "string": "x",
    "array": [],
    "object": {},
    "deep": deep_list(),
}


@dataclass(frozen=True)
class Mutation:
    """One damaged frame.

    ``expectation`` is the schema's verdict (``format`` not asserted): a valid frame may still name a tool
    that does not exist. ``reply`` says whether JSON-RPC wants an answer: ``open`` where the frame can be read
    both as a request and as something never answered. ``limited`` marks frames that a receiver may refuse for
    their size.
    """

    label: str
    frame_bytes: bytes
    expectation: Expectation
    reply: Reply
    limited: bool = False


def methods(revision: str, sender: Sender = "client") -> list[str]:
    """All requests, then all notifications, that ``sender`` may send in this revision."""
    oracle = Oracle.load(revision, formats=False)
    return [*oracle.requests(sender), *oracle.notifications(sender)]


def valid_frames(revision: str, method: str, sender: Sender = "client") -> Iterator[tuple[str, Any, Path]]:
    """(label, frame, focus): the minimal frame, the full one, then one per alternative in the schema."""
    oracle = Oracle.load(revision, formats=False)
    request = method in oracle.requests(sender)
    definition = (oracle.requests(sender) if request else oracle.notifications(sender))[method]
    envelope: dict[str, Any] = {"jsonrpc": "2.0", **({"id": REQUEST_ID} if request else {}), "method": method}

    def hint(path: Path) -> Any:
        if path and path[-1] in VERSION_MEMBERS:
            return revision
        return ANCHORS.get((method, str(path[1])), NO_HINT) if len(path) == 2 else NO_HINT

    instances = Instances(oracle.document, hint)
    yield "minimal", instances.minimal(definition) | envelope, ()
    # Older revisions describe `_meta` once, in the envelope, and not in each method's own definition.
    general = next(instances.full("JSONRPCRequest" if request else "JSONRPCNotification")).value["params"]
    meta = {key: value for key, value in general.items() if key == "_meta"}
    for number, variant in enumerate(instances.full(definition)):
        frame = variant.value | envelope
        frame["params"] = meta | frame.get("params", {})
        yield f"full {number}" if number else "full", frame, variant.focus


# --- damage ---


def mutations(revision: str, method: str, sender: Sender = "client") -> Iterator[Mutation]:
    """Every mutation of one method, no two with the same bytes, in a fixed order."""
    return iter(made(revision, method, sender))


@cache
def made(revision: str, method: str, sender: Sender) -> tuple[Mutation, ...]:
    oracle = Oracle.load(revision, formats=False)
    lines: dict[bytes, str] = {}
    for label, text in labelled(revision, method, sender):
        lines.setdefault(text.encode(), f"{method}: {label}")
    return tuple(judged(oracle, label, line, sender) for line, label in lines.items())


def labelled(revision: str, method: str, sender: Sender) -> Iterator[tuple[str, str]]:
    for name, frame, focus in valid_frames(revision, method, sender):
        yield name, dumps(frame)
        for label, text in field_damage(frame, focus or ("params",)):
            yield f"{name} {label}", text
        if name == "full":
            yield from envelope_damage(frame)


def judged(oracle: Oracle, label: str, line: bytes, sender: Sender) -> Mutation:
    frame = json.loads(line)
    try:
        oracle.check_frame(frame, sender=sender)
    except SchemaViolation:
        expectation: Expectation = "invalid"
    else:
        expectation = "valid"
    return Mutation(label, line, expectation, reply_to(frame), f"({LIMITED})" in label)


def reply_to(frame: Any) -> Reply:
    """Whether a receiver has to answer, as far as the frame alone tells."""
    if not isinstance(frame, dict):
        return "open" if isinstance(frame, list) and frame else "required"
    sound = frame.get("jsonrpc") == "2.0"
    response = "result" in frame or "error" in frame
    if "method" in frame and "id" in frame:
        return "open" if response else "required"
    if isinstance(frame.get("method"), str) and frame["method"] and "id" not in frame:
        return "forbidden" if sound and not response else "open"
    return "forbidden" if response and sound and "method" not in frame else "open"


def field_damage(frame: Any, focus: Path) -> Iterator[tuple[str, str]]:
    """Every field at and below ``focus``: wrong kinds, missing, twice; every object: one member more."""
    for path, value in nodes(frame):
        if path[: len(focus)] != focus:
            continue
        where = "/".join(map(str, path))
        for kind, wrong in WRONG_KINDS.items():
            if type(wrong) is not type(value) or wrong != value:
                yield f"{where} is {kind}", dumps(replaced(frame, path, wrong))
        yield f"{where} is missing", dumps(removed(frame, path))
        if isinstance(path[-1], str):
            yield f"{where} is there twice", doubled(frame, path)
        if isinstance(value, dict):
            yield f"{where} has one more", dumps(replaced(frame, (*path, "x-unknown"), [1]))
        if isinstance(value, list):
            yield f"{where} has one more", dumps(replaced(frame, path, [*value, None]))


def envelope_damage(frame: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The members of JSON-RPC itself."""
    for member in ("jsonrpc", "id", "method"):
        for kind, wrong in WRONG_KINDS.items():
            yield f"{member} is {kind}", dumps(frame | {member: wrong})
        yield f"{member} is missing", dumps(without(frame, member))
        if member in frame:
            yield f"{member} is there twice", doubled(frame, (member,))
    for version in ("1.0", "2", "2.00", "", " 2.0"):
        yield f"jsonrpc is {version!r}", dumps(frame | {"jsonrpc": version})
    for number in ("-1", "9007199254740993", "18446744073709551616", "1e3000", "-0"):
        yield f"id is {number}", dumps(frame | {"id": "@"}).replace('"@"', number)
    yield f"id has 400 digits ({LIMITED})", dumps(frame | {"id": "@"}).replace('"@"', LONG_INTEGER)
    yield f"id is a huge string ({LIMITED})", dumps(frame | {"id": LONG_STRING})
    yield "id is empty", dumps(frame | {"id": ""})
    for name in ("", " ", "tools", "TOOLS/CALL", "tools/call ", "rpc.discover", "\u0000", "é/ü"):
        yield f"method is {name!r}", dumps(frame | {"method": name})
    for member in ("jsonrpc", "id", "method", "params"):
        if member in frame:
            renamed = {key.upper() if key == member else key: value for key, value in frame.items()}
            yield f"{member} in capitals", dumps(renamed)
    yield "one member more", dumps(frame | {"x-unknown": {}})
    yield "a result beside the method", dumps(frame | {"result": {}})
    yield "an error beside the method", dumps(frame | {"error": {"code": 1, "message": ""}})
    yield (
        "result and error",
        dumps(without(frame, "method") | {"result": {}, "error": {"code": 1, "message": ""}}),
    )
    if frame["method"] != "initialize":  # which no batch may contain, whatever the schema says
        yield "in an array", dumps([frame])
        yield "in an array with a notification", dumps([frame, {"jsonrpc": "2.0", "method": "acme/event"}])
    yield "in an object", dumps({"message": frame})
    yield "as a string", dumps(dumps(frame))


# --- the tools of damage ---


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def nodes(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every member and item below ``value``, outermost first."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, part in items:
        yield (*path, key), part
        yield from nodes(part, (*path, key))


def parent_of(frame: Any, path: Path) -> Any:
    for step in path[:-1]:
        frame = frame[step]
    return frame


def replaced(frame: Any, path: Path, value: Any) -> Any:
    frame = deepcopy(frame)
    parent_of(frame, path)[path[-1]] = value
    return frame


def removed(frame: Any, path: Path) -> Any:
    frame = deepcopy(frame)
    del parent_of(frame, path)[path[-1]]
    return frame


def without(frame: dict[str, Any], member: str) -> dict[str, Any]:
    return {key: value for key, value in frame.items() if key != member}


def doubled(frame: Any, path: Path) -> str:
    """The member twice, with the same value: no damage, whichever of the two a reader keeps."""
    marker = "@first"
    twice = replaced(frame, (*path[:-1], marker), parent_of(frame, path)[path[-1]])
    return dumps(twice).replace(f'"{marker}"', json.dumps(path[-1]))


# --- all of them ---


def all_mutations(revision: str, sender: Sender = "client") -> tuple[Mutation, ...]:
    """The mutations of all methods of a revision; empty if it is unchecked."""
    return tuple(found for method in methods(revision, sender) for found in mutations(revision, method, sender))


def sample(revision: str, n: int, seed: int = 0, sender: Sender = "client") -> list[Mutation]:
    """``n`` mutations of a revision (all if there are fewer), always the same ones for the same seed."""
    everything = all_mutations(revision, sender)
    return random.Random(seed).sample(everything, min(n, len(everything)))
