"""What HTTP adds to a message: the headers that say again what the body says, and the status of every outcome.

The rules of 2026-07-28, transports/streamable-http. Pure: it reads headers and frames, it neither receives nor sends.
Which rule is judged before which stands in transport/http/server/stateless.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw

from ...revisions.revision import Era
from ...revisions.table import OFFICIAL_METHODS, REVISIONS
from ...web.asgi.message import Headers
from ...wire.errors import HeaderMismatch
from ...wire.http_headers import METHOD, NAME, PREFIX, VERSION
from ...wire.json.reader import read_json
from ...wire.messages import ErrorAnswer
from .header_codec import decode_value
from .param_headers import ParamHeader, check_param_headers

__all__ = ["STATUS", "status_of", "routing_value", "check_routing", "check_said", "check_params", "is_modern"]

_PLAIN = {word: word.encode() for word in (*REVISIONS, *OFFICIAL_METHODS)}
"""Versions and methods that read the same in a header; what an author calls a method may need a closer look."""

STATUS = {
    -32700: 400,
    -32600: 400,
    -32601: 404,  # so that a client tells it from a missing endpoint by its body (#protocol-version-header)
    -32602: 400,
    -32020: 400,
    -32021: 400,
    -32022: 400,
}
"""JSON-RPC code → HTTP status. The specification leaves all others open: they are answers, and answers are 200."""


def status_of(answer: bytes) -> int:
    return STATUS.get(answer.code, 200) if isinstance(answer, ErrorAnswer) else 200


def routing_value(headers: Headers, name: bytes) -> str | None:
    """A value that a proxy on the way may have routed by. Of one that came twice, it is not known which was read."""
    if name in headers.repeated:
        raise HeaderMismatch(f"{_shown(name)} came more than once")
    value = headers.values.get(name)
    return None if value is None else value.strip(b" \t").decode("latin-1")


def check_routing(headers: Headers, version: str, method: str, name: Any, named: bool) -> None:
    """Every request says its version, method and, where it has one, name in headers too (#server-validation)."""
    if not headers.repeated and _says_the_same(headers.values, version, method, name, named):
        return
    _must_say(headers, VERSION, version)
    _must_say(headers, METHOD, method)
    if not named:
        return
    said = routing_value(headers, NAME)
    if said is None and isinstance(name, str):
        raise HeaderMismatch("Mcp-Name is missing: it says again what the body names")
    if said is not None and decode_value(said) != name:
        raise HeaderMismatch("Mcp-Name differs from the name in the body")


def _says_the_same(values: dict[bytes, bytes], version: str, method: str, name: Any, named: bool) -> bool:
    """Byte for byte, in plain words: as nearly every request does. Others are looked at more closely."""
    if values.get(VERSION, b"") != _PLAIN.get(version) or values.get(METHOD, b"") != _PLAIN.get(method):
        return False
    if not named or not isinstance(name, str):
        return not named
    plain = name.isascii() and name.isprintable() and name.strip(" ") == name and not name.startswith("=?")
    return plain and values.get(NAME) == name.encode()


def check_said(headers: Headers, version: str | None, method: str) -> None:
    """A notification need not say anything in headers; what it says must be true."""
    if version is not None and routing_value(headers, VERSION) not in (None, version):
        raise HeaderMismatch("MCP-Protocol-Version differs from the body")
    if routing_value(headers, METHOD) not in (None, method):
        raise HeaderMismatch("Mcp-Method differs from the body")


def _must_say(headers: Headers, name: bytes, value: str) -> None:
    said = routing_value(headers, name)
    if said is None:
        raise HeaderMismatch(f"{_shown(name)} is missing: it says again what the body says")
    if said != value:
        raise HeaderMismatch(f"{_shown(name)} differs from the body")


def _shown(name: bytes) -> str:
    return {VERSION: "MCP-Protocol-Version", METHOD: "Mcp-Method", NAME: "Mcp-Name"}.get(name, name.decode("latin-1"))


def check_params(headers: Headers, params: tuple[ParamHeader, ...], arguments: Raw | bytes) -> None:
    """`Mcp-Param-*` against the arguments of the call (#server-behavior-for-custom-headers)."""
    if not params:
        return
    said: dict[str, str] = {}
    for param in params:
        name = (PREFIX + param.name).lower()
        value = routing_value(headers, name.encode())
        if value is not None:
            said[name] = value
    try:
        found = read_json(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return  # the params are what is wrong, and that is judged later
    if isinstance(found, Mapping):
        check_param_headers(params, cast("Mapping[str, Any]", found), said)


def is_modern(version: str | None) -> bool:
    """Does the version header belong to the stateless era? One that nobody knows belongs to no older one either."""
    if version is None:
        return False
    revision = REVISIONS.get(version)
    return revision is None or revision.era is Era.STATELESS
