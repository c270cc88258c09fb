"""How a client answers what servers ask: one set of callbacks, from which its capabilities are derived."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from ..protocol.input.form_schema import check_content, proposed_in
from ..protocol.input.validation import check_answer
from ..wire.errors import InvalidParams, LocalError, MethodNotFound
from ..wire.exchange import Question, Result
from ..wire.meta import check_capabilities

__all__ = ["Answers", "Callback"]

Callback = Callable[[dict[str, Any]], Mapping[str, Any] | Awaitable[Mapping[str, Any]]]
Roots = Sequence[str] | Callable[[], Any]


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The callbacks a caller gave. Each gets the params of the question and returns its result."""

    elicit: Callback | None = None
    elicit_url: Callback | None = None
    """For pages to open; the user must agree to the whole address first, and nothing may fetch it before."""
    sample: Callback | None = None
    roots: Roots | None = None
    experimental: Mapping[str, Mapping[str, Any]] | None = None
    extensions: Mapping[str, Mapping[str, Any]] | None = None

    def capabilities(self) -> dict[str, Any]:
        """What is declared: exactly what there is a callback for."""
        check_capabilities(self.experimental, self.extensions)
        self._check_given()
        found: dict[str, Any] = {}
        if self.elicit_url is not None:
            found["elicitation"] = {"url": {}} | ({"form": {}} if self.elicit is not None else {})
        elif self.elicit is not None:
            found["elicitation"] = {}
        if self.sample is not None:
            found["sampling"] = dict(getattr(self.sample, "declares", {}))  # one that can do more than text says so
        if self.roots is not None:
            found["roots"] = {}
        if self.experimental:
            found["experimental"] = {key: dict(value) for key, value in self.experimental.items()}
        if self.extensions:
            found["extensions"] = {key: dict(value) for key, value in self.extensions.items()}
        return found

    def _check_given(self) -> None:
        """A mistake shows when the client is made, not when a server asks."""
        for name in ("elicit", "elicit_url", "sample"):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise LocalError(f"{name}= is a function that answers, not {given!r:.60}")
        roots: Any = self.roots
        if isinstance(roots, str) or not (callable(roots) or isinstance(roots, Sequence | None)):
            raise LocalError(f"roots= is a list of file:// URIs, or a function that gives one, not {roots!r:.60}")
        if not callable(self.roots):
            _read_roots(self.roots or ())

    async def answer(self, question: Question) -> Result:
        if question.method == "roots/list" and self.roots is not None:
            return {"roots": await self._roots()}
        callback = {"elicitation/create": self.elicit, "sampling/createMessage": self.sample}.get(question.method)
        if question.method == "elicitation/create" and question.params.get("mode") == "url":
            callback = self.elicit_url
        if callback is None:
            raise MethodNotFound(f"This client does not offer {question.method!r}")
        given = callback(question.params)
        result = await given if inspect.isawaitable(given) else given
        if not isinstance(result, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - it is the author's
            told = f"the callback for {question.method} returned {type(result).__name__}, not a mapping"
            raise LocalError(f"{told} like {_LIKE[question.method]}")
        _check(question, answer := _with_defaults(question, dict(result)))
        return _without_needless_content(question, answer)

    async def _roots(self) -> list[dict[str, Any]]:
        given = self.roots() if callable(self.roots) else self.roots
        return _read_roots(cast("Sequence[Any]", await given if inspect.isawaitable(given) else given))


_LIKE = {
    "elicitation/create": '{"action": "accept", "content": {...}}',
    "sampling/createMessage": '{"role": "assistant", "content": {"type": "text", "text": "..."}, "model": "..."}',
}


def _read_roots(given: Sequence[Any]) -> list[dict[str, Any]]:
    """The members of `roots/list`: texts are the URIs of roots without a name."""
    roots = [
        {"uri": root} if not isinstance(root, Mapping) else dict(cast("Mapping[str, Any]", root)) for root in given
    ]
    for root in roots:
        _check_root(root.get("uri"))
    return roots


def _check_root(uri: Any) -> None:
    """Roots are directories or files, named without detours (client/roots#security-considerations)."""
    from urllib.parse import unquote, urlsplit  # a client without roots starts without it

    if not isinstance(uri, str) or urlsplit(uri).scheme != "file":
        raise LocalError(f"a root is a file:// URI, not {uri!r:.100}")
    if not uri.startswith("file://") or ".." in unquote(urlsplit(uri).path).replace("\\", "/").split("/"):
        raise LocalError(f"the root {uri!r:.100} does not name its place without detours")


def _with_defaults(question: Question, answer: Result) -> Result:
    """A field that was left alone has the value the form proposed (client/elicitation#requested-schema)."""
    schema: Any = question.params.get("requestedSchema")
    if question.method != "elicitation/create" or answer.get("action") != "accept" or not isinstance(schema, dict):
        return answer
    content: Any = answer.get("content")
    if not isinstance(content, dict | None):
        return answer
    proposed = proposed_in(cast("dict[str, Any]", schema))
    return {**answer, "content": {**proposed, **(content or {})}} if proposed else answer


def _without_needless_content(question: Question, answer: Result) -> Result:
    """Only a form that was accepted has content (client/elicitation#response-actions)."""
    if question.method != "elicitation/create":
        return answer
    filled = answer["action"] == "accept" and question.params.get("mode", "form") == "form"
    return answer if filled else {name: value for name, value in answer.items() if name != "content"}


def _check(question: Question, answer: Result) -> None:
    """What goes to a server is an answer to what it asked; a mistake of ours is told to us, not to it."""
    schema = question.params.get("requestedSchema")
    try:
        check_answer(question, answer, strict=True)
        if answer.get("action") == "accept" and isinstance(schema, dict):
            check_content(cast("dict[str, Any]", schema), answer.get("content"))
    except InvalidParams as error:
        raise LocalError(f"the callback for {question.method}: {error.message}") from None
