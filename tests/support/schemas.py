"""The oracle: says whether a frame is what its revision's schema allows.

    oracle = Oracle.load("2025-06-18")
    oracle.check_frame(frame, sender="server", answers="tools/call")     # raises SchemaViolation

On top of the schema the oracle holds a few rules that JSON Schema could not express and that the text of the
specification states: a response has exactly one of result and error, a request is sent by the side that may
send it, an ``input_required`` result asks for something and only where asking is allowed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Literal, Self

import jsonschema_rs

from support.schema_source import Document, Schema, load_document

__all__ = ["Oracle", "SchemaViolation", "Sender", "other_side"]

Sender = Literal["client", "server"]

# Result types that official extensions add to the core's `complete` and `input_required`.
EXTENSION_RESULT_TYPES = frozenset({"task"})


class SchemaViolation(AssertionError):
    """A frame is not what the schema allows; ``path`` is a JSON pointer into the frame."""

    def __init__(self, message: str, *, definition: str = "", path: str = "") -> None:
        self.message = message
        self.definition = definition
        self.path = path
        where = " at ".join(part for part in (definition, path) if part)
        super().__init__(f"{where}: {message}" if where else message)


def other_side(sender: Sender) -> Sender:
    return "server" if sender == "client" else "client"


def refuse_remote(uri: str) -> Any:
    raise ValueError(f"a schema refers to {uri}; nothing is ever fetched")


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


class Oracle:
    """One revision's schema, able to judge frames of both sides."""

    def __init__(self, document: Document, *, formats: bool = True) -> None:
        self.document = document
        self.revision = document.revision
        self.formats = formats

    @classmethod
    @cache
    def load(cls, revision: str, *, formats: bool = True) -> Self:
        """The oracle of a revision. ``formats=False`` treats ``format`` (uri, uri-template, byte) as an annotation."""
        return cls(load_document(revision), formats=formats)

    # --- what the schema knows ---

    @cached_property
    def batches(self) -> bool:
        return "JSONRPCBatchRequest" in self.document.definitions

    def requests(self, sender: Sender) -> Mapping[str, str]:
        """Method → definition of every request this side may send."""
        return self._calls[f"{sender.capitalize()}Request"]

    def notifications(self, sender: Sender) -> Mapping[str, str]:
        """Method → definition of every notification this side may send."""
        return self._calls[f"{sender.capitalize()}Notification"]

    @cached_property
    def _calls(self) -> dict[str, dict[str, str]]:
        sides, kinds = ("Client", "Server"), ("Request", "Notification")
        return {side + kind: self._union(side + kind) for side in sides for kind in kinds}

    def _union(self, name: str) -> dict[str, str]:
        union = self.document.definitions.get(name)
        if union is None:
            return {}
        methods = {}
        for branch in union.get("anyOf", [union]):
            definition = self.document.referred(branch) or name
            methods[self.document.resolve(branch)["properties"]["method"]["const"]] = definition
        return methods

    def result_definitions(self, method: str, sender: Sender) -> tuple[str, ...]:
        """What ``sender`` may answer to ``method``: the result proper first, then its alternatives."""
        definition = self.requests(other_side(sender)).get(method)
        if definition is None:
            return ("Result",)
        definitions = self.document.definitions
        stem = definition.removesuffix("Request")
        proper = f"{stem}Result" if f"{stem}Result" in definitions else "EmptyResult"
        alternatives = []
        if "InputRequiredResult" in self._referred_by(definitions.get(f"{stem}ResultResponse", {}), "result"):
            alternatives.append("InputRequiredResult")
        if "CreateTaskResult" in definitions and self._takes_task(definition):
            alternatives.append("CreateTaskResult")
        return (proper, *alternatives)

    def _referred_by(self, schema: Schema, member: str) -> set[str | None]:
        part = schema.get("properties", {}).get(member, {})
        return {self.document.referred(branch) for branch in part.get("anyOf", [part])}

    def _takes_task(self, definition: str) -> bool:
        params = self.document.resolve(self.document.definitions[definition]["properties"].get("params", {}))
        branches = [self.document.resolve(branch) for branch in params.get("anyOf", [params])]
        return any("task" in branch.get("properties", {}) for branch in branches)

    @cached_property
    def error_definitions(self) -> dict[int, tuple[str, bool]]:
        """Code → (definition, whether it describes the whole frame rather than its ``error`` member)."""
        found = {}
        for name, schema in self.document.definitions.items():
            if name.endswith("Error"):
                whole = "error" in schema.get("properties", {})
                code = self._code(schema["properties"]["error"] if whole else schema)
                if code is not None:
                    found[code] = (name, whole)
        return found

    def _code(self, schema: Schema) -> int | None:
        schema = self.document.resolve(schema)
        for branch in [schema, *schema.get("allOf", [])]:
            code = self.document.resolve(branch).get("properties", {}).get("code", {})
            if "const" in code:
                return code["const"]
        return None

    # --- judging ---

    def check_definition(self, name: str, value: Any, *, at: str = "") -> None:
        """Raise unless ``value`` is an instance of the named definition."""
        error = next(validator(self.revision, name, self.formats).iter_errors(value), None)
        if error is not None:
            path = at + "".join(f"/{step}" for step in error.instance_path)
            raise SchemaViolation(error.message[:300], definition=name, path=path)

    def check_frame(
        self, frame: Any, *, sender: Sender, answers: str | None = None, allow_missing_id: bool = False
    ) -> None:
        """Raise unless ``sender`` may put ``frame`` on the wire.

        ``answers`` is the method a response answers; without it only the response's envelope is judged.
        ``allow_missing_id`` accepts an id-less error where the revision's schema demands an id.
        """
        if isinstance(frame, list):
            self._check_batch(frame, sender=sender, allow_missing_id=allow_missing_id)
        elif not isinstance(frame, dict):
            raise SchemaViolation("a message is a JSON object")
        elif "method" in frame:
            self._check_call(frame, sender)
        elif "result" in frame and "error" in frame:
            raise SchemaViolation("a response has both result and error")
        elif "result" in frame:
            self._check_result(frame, sender, answers)
        elif "error" in frame:
            self._check_error(frame, allow_missing_id)
        else:
            raise SchemaViolation("neither a request, a notification nor a response")

    def _check_batch(self, frames: list[Any], *, sender: Sender, allow_missing_id: bool) -> None:
        if not self.batches:
            raise SchemaViolation(f"{self.revision} has no batches")
        if not frames:
            raise SchemaViolation("a batch is never empty")
        for frame in frames:
            if isinstance(frame, list):
                raise SchemaViolation("a batch holds messages, not batches")
            self.check_frame(frame, sender=sender, allow_missing_id=allow_missing_id)
        if len({"method" in frame for frame in frames}) > 1:
            raise SchemaViolation("a batch holds either calls or responses")

    def _check_call(self, frame: Schema, sender: Sender) -> None:
        if "result" in frame or "error" in frame:
            raise SchemaViolation("a call carries a result or an error")
        request = "id" in frame
        self.check_definition("JSONRPCRequest" if request else "JSONRPCNotification", frame)
        method = frame["method"]
        mine, wrong = self.requests(sender), self.notifications(sender)
        if not request:
            mine, wrong = wrong, mine
        if method in mine:
            self.check_definition(mine[method], frame)
        elif method in wrong:
            raise SchemaViolation(f"{method} is a notification" if request else f"{method} needs an id")
        elif request and not self.requests(sender):
            raise SchemaViolation(f"{self.revision} has no requests from the {sender}")
        elif method in self.requests(other_side(sender)) or method in self.notifications(other_side(sender)):
            raise SchemaViolation(f"{method} is not for the {sender} to send")

    def _check_result(self, frame: Schema, sender: Sender, answers: str | None) -> None:
        modern = "JSONRPCResultResponse" in self.document.definitions
        self.check_definition("JSONRPCResultResponse" if modern else "JSONRPCResponse", frame)
        if answers is not None:
            result = frame["result"]
            name = self._chosen_result(result, self.result_definitions(answers, sender))
            self.check_definition(name, result, at="/result")

    def _chosen_result(self, result: Schema, names: tuple[str, ...]) -> str:
        """Which of the results a method may have is this one?"""
        if "CreateTaskResult" in names and "task" in result:
            return "CreateTaskResult"
        if "ResultType" not in self.document.definitions:
            return names[0]
        kind = result.get("resultType")
        if kind == "input_required":
            if "InputRequiredResult" not in names:
                raise SchemaViolation("this method never asks for input", path="/result/resultType")
            if "inputRequests" not in result and "requestState" not in result:
                raise SchemaViolation("asks for nothing and carries no state", path="/result")
            return "InputRequiredResult"
        if kind in EXTENSION_RESULT_TYPES:
            return "Result"
        if kind != "complete":
            raise SchemaViolation(f"unknown result type {kind!r}", path="/result/resultType")
        return names[0]

    def _check_error(self, frame: Schema, allow_missing_id: bool) -> None:
        judged = {"id": 0, **frame} if allow_missing_id else frame
        modern = "JSONRPCErrorResponse" in self.document.definitions
        self.check_definition("JSONRPCErrorResponse" if modern else "JSONRPCError", judged)
        name, whole = self.error_definitions.get(frame["error"]["code"], (None, False))
        if name is not None:
            value, at = (judged, "") if whole else (frame["error"], "/error")
            self.check_definition(name, value, at=at)


@cache
def validator(revision: str, name: str, formats: bool) -> jsonschema_rs.Validator:
    """The compiled validator of one definition."""
    document = load_document(revision)
    if name not in document.definitions:
        raise KeyError(f"{revision} defines no {name}")
    # `allOf`, because draft-07 ignores everything beside a `$ref`.
    schema = {"$schema": document.dialect, "allOf": [document.reference(name)], "$defs": document.definitions}
    return jsonschema_rs.validator_for(
        schema, validate_formats=formats, formats={"byte": is_base64}, retriever=refuse_remote
    )
