"""What a handler can ask, as questions for the wire, and the answers as what a handler wants to have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..protocol.input.sampling import what_is_wrong
from ..wire.errors import LocalError, ToolError
from ..wire.exchange import Question, Result
from ..wire.json.lenient import is_number, one_or_more
from .elicitation_form import Form, form_of

__all__ = [
    "Declined",
    "Sampled",
    "Root",
    "form_of",
    "ask_form",
    "ask_url",
    "ask_sample",
    "ask_roots",
    "read_form",
    "read_url",
    "read_sample",
    "read_roots",
]


_FORM = ("elicitation.form",)


class Declined(ToolError):
    """The user said no, or closed the question. Unhandled, the model reads it as the tool's result."""

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"The user {'declined to answer' if action == 'decline' else 'dismissed the question'}")
        self.asked = message
        self.action = action
        """`decline`: an explicit no. `cancel`: no choice was made."""


class Sampled(msgspec.Struct, frozen=True):
    """What the client's model said."""

    role: str
    content: list[dict[str, Any]]
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(block["text"] for block in self.content if isinstance(block.get("text"), str))


class Root(msgspec.Struct, frozen=True):
    """A place the client's user works in."""

    uri: str
    name: str | None = None


def ask_form(message: str, form: Form, key: str | None) -> Question:
    params = {"mode": "form", "message": message, "requestedSchema": form.schema}
    identity = form.identity + message.encode() if form.identity else b""
    return Question("elicitation/create", params, _FORM, key, form.check, identity)


def read_form(message: str, form: Form, answer: Result) -> Any:
    _accepted(message, answer)
    return form.read(answer.get("content") or {})


def ask_url(message: str, url: str, key: str | None) -> Question:
    from urllib.parse import urlsplit  # a server starts without it

    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.netloc or "@" in parts.netloc:
        raise LocalError(f"{url!r:.100} is no URL to send a user to: use https, without credentials in it")
    params = {"mode": "url", "message": message, "url": url}
    return Question("elicitation/create", params, ("elicitation.url",), key)


def read_url(message: str, answer: Result) -> None:
    """Accepted means that the user agreed to open it, not that anything was done there yet."""
    _accepted(message, answer)


def _accepted(message: str, answer: Result) -> None:
    if answer["action"] != "accept":
        raise Declined(message, answer["action"])


def ask_sample(
    messages: str | Sequence[Mapping[str, Any]], max_tokens: int, options: Mapping[str, Any], key: str | None
) -> Question:
    """`options` by their Python names; those that are None are left out."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
    params: dict[str, Any] = {"messages": [dict(message) for message in messages], "maxTokens": max_tokens}
    params |= {_camel(name): value for name, value in options.items() if value is not None}
    _check_sample(params)
    needs = ["sampling"]
    if "tools" in params or "toolChoice" in params:
        needs.append("sampling.tools")
    return Question("sampling/createMessage", params, tuple(needs), key)


def _check_sample(params: Mapping[str, Any]) -> None:
    wrong = what_is_wrong(params["messages"])
    if wrong is not None:
        raise LocalError(f"these messages cannot be sampled: {wrong}")
    for name, value in params.get("modelPreferences", {}).items():
        if name.endswith("Priority") and not (is_number(value) and 0 <= value <= 1):
            raise LocalError(f"{name!r:.40} is a number from 0 to 1, not {value!r:.40}")


def read_sample(answer: Result) -> Sampled:
    return Sampled(answer["role"], one_or_more(answer["content"]), answer["model"], answer.get("stopReason"))


def ask_roots(key: str | None) -> Question:
    return Question("roots/list", {}, ("roots",), key)


def read_roots(answer: Result) -> list[Root]:
    return [Root(root["uri"], root.get("name")) for root in answer["roots"]]


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)
