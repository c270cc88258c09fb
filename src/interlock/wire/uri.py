"""What a URI is (RFC 3986), for everybody who is given one: authors' resources and clients' wishes alike."""

from __future__ import annotations

from .lazy_regex import pattern

__all__ = ["has_uri_characters", "is_uri"]

# In every part the next character alone decides how it goes on, so that nothing is read twice; and every repetition is
# of one class of characters, which needs no memory. Hence `%` counts as a character here and is looked at apart.
_BROKEN_ESCAPE = pattern("%(?![0-9A-Fa-f]{2})")
_UNRESERVED, _SUB_DELIMS = "%A-Za-z0-9._~-", "!$&'()*+,;="
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"
_ADDRESS = rf"\[(?:[0-9A-Fa-f:.]+|[vV][0-9A-Fa-f]+\.[{_SUB_DELIMS}:{_UNRESERVED[1:]}]+)\]"
_HOST = rf"(?:{_ADDRESS}|[{_SUB_DELIMS}{_UNRESERVED}]*)(?::[0-9]*)?"
_USER = f"[{_SUB_DELIMS}:{_UNRESERVED}]*@"
_PATH, _MORE = f"[/:@{_SUB_DELIMS}{_UNRESERVED}]*", f"[/?:@{_SUB_DELIMS}{_UNRESERVED}]*"
_URI = pattern(rf"{_SCHEME}(?://(?:{_USER})?{_HOST}(?=[/?#]|\Z)|(?!//)){_PATH}(?:\?{_MORE})?(?:\#{_MORE})?")
_CHARACTERS = pattern(rf"{_SCHEME}[!#$%&-;=?@\[\]_a-zA-Z~]*")


def is_uri(text: str) -> bool:
    """A scheme, then authority, path, query and fragment in the characters each of them may have."""
    return _URI.fullmatch(text) is not None and _BROKEN_ESCAPE.search(text) is None


def has_uri_characters(text: str) -> bool:
    """The same for what others ask for, by its characters alone: people write `note://item:a`, which names no port."""
    return _CHARACTERS.fullmatch(text) is not None and _BROKEN_ESCAPE.search(text) is None
