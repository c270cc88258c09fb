"""What a server that turns a request away asks for: the WWW-Authenticate header (RFC 9110 §11.6.1, RFC 6750 §3).

A header may hold several challenges, and several headers are one list; the text is a peer's, so that whatever does not
fit is passed over and never guessed at.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..wire.lazy_regex import pattern

__all__ = ["Demand", "challenges_in", "demand_in", "scopes_in"]

_NAME = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = pattern(r"""[ \t]*=[ \t]*(?:"([^"\\]*(?:\\.[^"\\]*)*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))(?=[ \t]*(?:,|\Z))""")
_TOKEN68 = pattern(r"[ \t]+[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|\Z))")
_GAP = pattern(r"[ \t,]*")
_ESCAPED = pattern(r"\\(.)")
_SCOPE = pattern(r"[\x21\x23-\x5b\x5d-\x7e]+")
_MOST_SCOPES = 100  # of one list; what comes behind is not asked for
_LONGEST_SCOPE = 256
_LONGEST = 16 * 1024  # characters of the header that are read


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What of a challenge matters to a client."""

    dpop: bool = False
    """Only a token bound to a key will do (RFC 9449 §7.1)."""
    metadata: str | None = None
    scope: tuple[str, ...] | None = None
    error: str | None = None


def demand_in(header: str | None) -> Demand:
    """The first Bearer challenge, or the first DPoP one where there is no Bearer; nothing, where neither is."""
    found = [(scheme, params) for scheme, params in challenges_in(header or "") if scheme in ("bearer", "dpop")]
    if not found:
        return Demand()
    scheme, params = next((each for each in found if each[0] == "bearer"), found[0])
    more = [params, *(others for _, others in found if others is not params)]
    told = {name: value for each in reversed(more) for name, value in each.items()}
    scope = told.get("scope")
    return Demand(
        dpop=scheme == "dpop",
        metadata=told.get("resource_metadata"),
        scope=scopes_in(scope) if scope is not None else None,
        error=told.get("error"),
    )


def challenges_in(header: str) -> list[tuple[str, dict[str, str]]]:
    """Every challenge: its scheme and the names of its parameters in small letters; of a repeated one the first."""
    found: list[tuple[str, dict[str, str]]] = []
    header, at = header[:_LONGEST], 0
    while at < len(header):
        gap = _GAP.match(header, at)
        at = gap.end() if gap else at
        name = _NAME.match(header, at)
        if name is None:
            at = header.find(",", at) + 1 or len(header)  # no challenge: the next one may be
            continue
        at = name.end()
        value = _VALUE.match(header, at)
        if value is not None:
            at = value.end()
            if found:
                quoted = value[1]
                text = _ESCAPED.sub(r"\1", quoted) if quoted is not None else value[2]
                found[-1][1].setdefault(name[0].lower(), text)
            continue
        found.append((name[0].lower(), {}))
        only = _TOKEN68.match(header, at)
        at = only.end() if only is not None else at
    return found


def scopes_in(text: str | Iterable[str]) -> tuple[str, ...]:
    """The scopes of a list, each once, in order; what is no scope (RFC 6749 §3.3) is left out."""
    words = text.split(" ") if isinstance(text, str) else text
    fit = (word for word in words if len(word) <= _LONGEST_SCOPE and _SCOPE.fullmatch(word))
    return tuple(dict.fromkeys(fit))[:_MOST_SCOPES]
