"""What an authorization server answers, and what it is sent: forms read strictly, errors in the words of OAuth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

__all__ = ["BadForm", "OAuthError", "Reply", "as_json", "read_form", "redirect"]

_MOST_FIELDS = 50
_LONGEST_VALUE = 16 * 1024
_NO_STORE = (("cache-control", "no-store"), ("pragma", "no-cache"))


class Reply(msgspec.Struct, frozen=True):
    """One answer. Nothing of it may be kept by anybody on the way, unless its headers say so."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __repr__(self) -> str:
        """Bodies and locations hold tokens and codes."""
        return f"Reply({self.status}, {len(self.body)} bytes)"


class OAuthError(Exception):
    """A no in the words of RFC 6749 §5.2: `error` is the code, `told` a sentence of ours that repeats no secret."""

    def __init__(self, error: str, told: str, status: int = 400, *headers: tuple[str, str]) -> None:
        super().__init__(told)
        self.error, self.status, self.headers = error, status, headers

    def reply(self) -> Reply:
        return as_json(self.status, {"error": self.error, "error_description": str(self)}, *self.headers)


class BadForm(OAuthError):
    def __init__(self, told: str) -> None:
        super().__init__("invalid_request", told)


def as_json(status: int, members: Mapping[str, Any], *headers: tuple[str, str]) -> Reply:
    named = {name for name, _ in headers}
    kept = () if "cache-control" in named else _NO_STORE
    return Reply(status, (("content-type", "application/json"), *kept, *headers), msgspec.json.encode(members))


def read_form(text: bytes | str) -> dict[str, str]:
    """The fields of a form or a query: each once, in UTF-8, within bounds. Empty ones count as absent (§3.1)."""
    try:
        raw = text.decode("ascii") if isinstance(text, bytes) else text
        pairs = parse_qsl(raw, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BadForm("the parameters cannot be read") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadForm("a parameter is there twice")
    if any(len(value) > _LONGEST_VALUE or "\0" in value for value in found.values()):
        raise BadForm("a parameter is too long, or holds what no text does")
    return {name: value for name, value in found.items() if value}


def redirect(uri: str, **members: str | None) -> Reply:
    """Back to the client: its own query stays, ours comes behind (§4.1.2). 303: what was posted is not posted there."""
    told = urlencode({name: value for name, value in members.items() if value is not None})
    joined = f"{uri}{'&' if urlsplit(uri).query else '?'}{told}"
    return Reply(303, (("location", joined), *_NO_STORE, ("referrer-policy", "no-referrer")))
