"""Where HTTP requests go, checked before anything is sent: the URL, by who named it, and the headers of the owner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import msgspec

from ...wire.errors import InterlockError, LocalError, RemoteError
from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from .address_policy import NAMED, NAMED_HERE, TYPED, Permit, Policy, is_here, permit_of
from .ip_kinds import literal_in

__all__ = ["Endpoint", "endpoint_of", "hide_references", "label_of"]

_TOKEN = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST = pattern(r"[0-9A-Za-z._-]+|[0-9A-Fa-f:.]+")  # a name or an address
_AUTHORITY = pattern(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\])(?::[0-9]*)?")  # and nothing around it
_BEFORE_PATH = pattern(r"(?:https?://)?(?:[^/?#$]|\$(?!\{)|\$\{[^{}]{0,1024}\})*", re.IGNORECASE)
_MOST_CAUSES = 8  # of one error
_PORTS = {"http": 80, "https": 443}
_OURS = ("content-", "mcp-", "proxy-")
_OF_HTTP = {"host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect"}
_RESERVED = _OF_HTTP | {"accept", "accept-encoding", "origin", "last-event-id"}
_LONGEST_URL = 8 * 1024
_MOST_HEADER_BYTES = 64 * 1024


class Endpoint(msgspec.Struct, frozen=True):
    """A URL that may be asked. `origin` is scheme, host and port: what a redirect must not leave."""

    url: str
    origin: str
    permit: Permit
    headers: dict[str, str] = {}
    allowed: frozenset[str] = frozenset()
    label: str = ""
    """What messages call it: its origin, or how a configuration writes that."""
    references: dict[str, str] = {}
    """Texts that a configuration looked up, each with its reference as it is written (`${env:TOKEN}`)."""

    def __repr__(self) -> str:
        """Headers and queries hold secrets; what is printed into a log must not."""
        return f"Endpoint({self.label!r})"

    def conceal(self, error: InterlockError) -> InterlockError:
        """The same error, which shows references instead of what was looked up for them; its causes as well."""
        seen: BaseException | None = error if self.references else None
        for _ in range(_MOST_CAUSES):
            if seen is None:
                break
            seen.args = tuple(self._concealed(each) for each in seen.args)
            for name, value in vars(seen).items():
                setattr(seen, name, self._concealed(value))
            seen = seen.__cause__
        return error

    def _concealed(self, value: Any) -> Any:
        return hide_references(value, self.references) if isinstance(value, str) else value

    def redirected(self, location: str, at: str | None = None) -> str | None:
        """The URL that a redirect from `at` (our own, if not said) names when it stays within the origin, else None."""
        try:
            url = urljoin(at or self.url, location)
            return url if origin_of(_parsed(url)) == self.origin else None
        except (LocalError, ValueError):
            return None

    def named(self, url: str, headers: Mapping[str, str] | None = None) -> Endpoint:
        """A URL that the server behind this one has named, or `RemoteError`. Our own headers do not go there.

        On our own origin the server may name what it likes: there we ask anyway.
        """
        try:
            ours = origin_of(_parsed(url)) == self.origin
        except LocalError as error:
            raise RemoteError(f"the server named a URL that is not asked: {error}") from None
        policy = self.permit.policy if ours else NAMED_HERE if is_here(self.permit.host) else NAMED
        return endpoint_of(url, headers, policy=policy, allowed_hosts=self.allowed, references=self.references)


def hide_references(text: str, references: Mapping[str, str]) -> str:
    """`text` with references (`${env:TOKEN}`) in the place of what was looked up for them."""
    for found in sorted(references, key=len, reverse=True):
        text = text.replace(found, references[found])
    return text


def endpoint_of(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    policy: Policy = TYPED,
    allowed_hosts: Iterable[str] = (),
    shown: str = "",
    references: Mapping[str, str] | None = None,
) -> Endpoint:
    """Check all, or raise `LocalError` (`RemoteError` for what a server named); secrets are never shown.

    `shown` is the URL as messages may show it, and `references` are the texts that they must not, where a configuration
    has looked up parts of it."""
    parts, allowed = _parsed(url, shown), _names(allowed_hosts)
    permit = permit_of(policy, parts.scheme, parts.hostname or "", allowed)
    origin = origin_of(parts)
    label = label_of(shown) if shown and label_of(shown) != label_of(url) else origin
    return Endpoint(url, origin, permit, _checked(headers or {}), allowed, label, {**(references or {})})


def label_of(shown: str) -> str:
    """A URL, in which references may stand, up to its path."""
    found = _BEFORE_PATH.match(shown)
    return found[0] if found is not None else ""


def _names(allowed_hosts: Iterable[str]) -> frozenset[str]:
    if isinstance(allowed_hosts, str):
        raise LocalError("allowed_hosts is a list of names, not one name")
    names = frozenset(name.lower().removeprefix("[").removesuffix("]") for name in allowed_hosts)
    for name in names:
        if not _HOST.fullmatch(name):
            told = "write it as it stands in the URL, without scheme and port"
            raise LocalError(f"allowed_hosts: {display(name, 100)!r} is no host: {told}")
    return names


def origin_of(parts: SplitResult) -> str:
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{parts.port or _PORTS[parts.scheme]}"


def _parsed(url: str, shown: str = "") -> SplitResult:
    shown = display((shown or url).partition("?")[0].rpartition("@")[2], 100)
    if len(url) > _LONGEST_URL or not all("!" <= char <= "~" for char in url) or "\\" in url:
        raise LocalError(f"{shown!r} is no URL: use printable ASCII without spaces (percent-encode the rest)")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise LocalError(f"{shown!r} is no URL: {error}") from None
    if parts.scheme not in _PORTS:
        raise LocalError(f"{shown!r}: the URL of an MCP endpoint begins with http:// or https://")
    if "@" in parts.netloc:
        raise LocalError(f"{shown!r}: no credentials in URLs, they end up in logs: use headers= for them")
    if not parts.hostname or not _AUTHORITY.fullmatch(parts.netloc) or port == 0:
        raise LocalError(f"{shown!r}: the URL names no host, or no port that exists")
    try:
        literal_in(parts.hostname)
    except ValueError as error:
        raise LocalError(f"{shown!r}: {error}") from None
    if parts.fragment or url.endswith("#"):
        raise LocalError(f"{shown!r}: a fragment (#...) never reaches a server: leave it out")
    return parts


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    seen: set[str] = set()
    for name, value in headers.items():
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            raise LocalError(f"headers: {display(name, 60)!r} is no header name")
        if lower in _RESERVED or lower.startswith(_OURS):
            raise LocalError(f"headers: {name} belongs to the protocol and cannot be set")
        if lower in seen:
            raise LocalError(f"headers: {name} is there twice")
        if not all(" " <= char <= "~" for char in value) or value != value.strip(" "):
            raise LocalError(f"headers: the value of {name} must be printable ASCII without spaces around it")
        seen.add(lower)
    if sum(len(name) + len(value) for name, value in headers.items()) > _MOST_HEADER_BYTES:
        raise LocalError(f"headers: more than {_MOST_HEADER_BYTES} bytes")
    return dict(headers)
