"""`null` in the place of an optional member of a request, read as if the member was not there.

Many clients write out what they do not have (`"cursor": null`), where the schema has no null. Only a request that
could not be read comes here, and only what its decoder complains about is taken out, so that a null that means
something (in the arguments of a tool, say) stays. `params` themselves must be an object where they are there: that is a
rule of JSON-RPC. `lenient.py` does the same for results.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from ..messages import Frame, encode
from ..meta import PROTOCOL_VERSION

__all__ = ["without_nulls"]

_ENVELOPE = PROTOCOL_VERSION.partition("/")[0] + "/"  # how the names of its members begin
MAX_NULLS = 16  # members that are taken out of one request; each means another look at all of it
MAX_NULLS_OF_LARGE = 4
LARGE = 64 * 1024  # bytes of params
_NULL = re.compile(r"got `null` - at `\$\.(.+)`$")
_members = msgspec.json.Decoder(dict[str, Raw])
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def without_nulls(frame: Frame, decode: Callable[[Any], Any], refused: Exception) -> Frame | None:
    """The same request without the null members that `decode` refuses, first of all with the error `refused`; None
    where nothing can be taken out, or too much would have to be."""
    if frame.params is UNSET:
        return None
    first = params = bytes(frame.params)
    error: Exception | None = refused
    left = MAX_NULLS if len(params) <= LARGE else MAX_NULLS_OF_LARGE
    while (found := _NULL.search(str(error))) is not None and isinstance(error, msgspec.ValidationError):
        shorter = _without(params, found[1])
        if shorter is None:
            break
        if not left:
            return None  # who gets a request back reads it once more, and would come here again
        params, left = shorter, left - 1
        error = _refusal(decode, params)
    return None if params is first else Frame(frame.jsonrpc, frame.id, frame.method, Raw(params))


def _refusal(decode: Callable[[Any], Any], params: bytes) -> Exception | None:
    try:
        decode(params)
    except _UNREADABLE as error:
        return error
    return None


def _without(params: bytes, path: str) -> bytes | None:
    """Without the null at that path; None where there is none. A name may hold dots itself."""
    try:
        members = _members.decode(params)
    except _UNREADABLE:
        return None
    for name, member in members.items():
        if name.startswith(_ENVELOPE):
            continue  # a broken envelope is refused, and never taken for another era's (modern.md §11)
        if name == path and bytes(member).strip() == b"null":
            return encode({other: value for other, value in members.items() if other != name})
        inner = _without(bytes(member), path[len(name) + 1 :]) if path.startswith(f"{name}.") else None
        if inner is not None:
            return encode({**members, name: Raw(inner)})
    return None
