"""What a URI is (RFC 3986), for everybody who is given one: authors' resources and clients' wishes alike."""

from __future__ import annotations

from .patterns import pattern

__all__ = ["has_uri_characters", "is_uri"]

_TRIPLE = "%[0-9A-Fa-f]{2}"
_UNRESERVED, _SUB_DELIMS = "A-Za-z0-9._~-", "!$&'()*+,;="


def _some(characters: str) -> str:
    """Any number of these or of %XX; possessive, so that nothing is ever read twice."""
    return f"(?:[{characters}]|{_TRIPLE})*+"


_ADDRESS = rf"\[(?:[0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[{_SUB_DELIMS}:{_UNRESERVED}]+)\]"
_HOST = rf"(?:{_ADDRESS}|{_some(_SUB_DELIMS + _UNRESERVED)})(?::[0-9]*+)?"
_USER = f"{_some(_SUB_DELIMS + ':' + _UNRESERVED)}@"
_PATH = _some("/:@" + _SUB_DELIMS + _UNRESERVED)
_MORE = _some("/?:@" + _SUB_DELIMS + _UNRESERVED)
_URI = pattern(
    rf"[A-Za-z][A-Za-z0-9+.-]*+:(?://(?:{_USER})?{_HOST}(?=[/?#]|\Z)|(?!//)){_PATH}(?:\?{_MORE})?(?:\#{_MORE})?"
)


_CHARACTERS = pattern(rf"[A-Za-z][A-Za-z0-9+.-]*+:(?:[!#$&-;=?@\[\]_a-zA-Z~]|{_TRIPLE})*+")


def is_uri(text: str) -> bool:
    """A scheme, then authority, path, query and fragment in the characters each of them may have."""
    return _URI.fullmatch(text) is not None


def has_uri_characters(text: str) -> bool:
    """The same for what others ask for, by its characters alone: people write `note://item:a`, which names no port."""
    return _CHARACTERS.fullmatch(text) is not None
