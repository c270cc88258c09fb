"""Requests and responses of ASGI: its types, the headers of a request, and a whole response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, cast

import msgspec

from ...wire.errors import InvalidRequest, LocalError, Refused
from ...wire.lazy_regex import pattern
from ...wire.messages import encode_error

__all__ = ["Message", "Receive", "Send", "TOKEN", "Headers", "HttpRefusal", "send_whole"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TOKEN = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 §5.6.2
_FRAMING = ("content-length", "transfer-encoding")


class HttpRefusal(msgspec.Struct, frozen=True):
    """A no that needs no JSON-RPC request: what a guard or an `authenticate` hook answers."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    @classmethod
    def saying(cls, status: int, why: str | Refused, *headers: tuple[str, str]) -> HttpRefusal:
        """With a JSON-RPC error without an id as its body (#security--endpoint allows that for 403)."""
        refused = why if isinstance(why, Refused) else InvalidRequest(why)
        return cls(status, (("content-type", "application/json"), *headers), encode_error(None, refused))

    def check(self) -> None:
        """Raise `LocalError` for what is no response: one that an author wrote may repeat what a stranger said."""
        lines = cast("tuple[tuple[Any, Any], ...]", self.headers)
        if not 200 <= self.status <= 599 or not isinstance(cast(Any, self.body), bytes):
            raise LocalError("a refusal has a status from 200 to 599 and a body of bytes")
        for name, value in lines:
            if not isinstance(name, str) or not TOKEN.fullmatch(name) or name.lower() in _FRAMING:
                raise LocalError(f"a refusal: {name!r:.60} is no header it can have")
            if not isinstance(value, str) or not all(" " <= char <= "~" or char == "\t" for char in value):
                raise LocalError(f"a refusal: the value of {name} must be printable ASCII")


class Headers:
    """The header lines of one request, their names in small letters. `repeated` are those that came more than once."""

    __slots__ = ("repeated", "values")

    def __init__(self, lines: Iterable[tuple[bytes, bytes]]) -> None:
        lines = list(lines)
        self.values: dict[bytes, bytes] = dict(lines)
        self.repeated: frozenset[bytes] = frozenset()
        if len(self.values) != len(lines):
            held: dict[bytes, list[bytes]] = {}
            for name, value in lines:
                held.setdefault(name, []).append(value)
            self.repeated = frozenset(name for name, values in held.items() if len(values) > 1)
            # a list may come in pieces (RFC 9110 §5.3); what is no list is then no value that anybody knows
            self.values = {name: b", ".join(values) for name, values in held.items()}

    def get(self, name: bytes) -> bytes | None:
        """The value without the white space around it: not every HTTP parser takes it away (RFC 9110 §5.5)."""
        value = self.values.get(name)
        return None if value is None else value.strip(b" \t")

    def as_text(self) -> dict[str, str]:
        """For `authenticate`: a key that came twice has both values, and is not the last one somebody added."""
        return {name.decode("latin-1"): value.strip(b" \t").decode("latin-1") for name, value in self.values.items()}


async def send_whole(send: Send, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
    """With its length, which nobody else may say."""
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    lines.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})
