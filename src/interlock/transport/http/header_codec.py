"""Values in HTTP header fields: what a request's body says, said again in its headers (2026-07-28, transports/http).

A value that plain ASCII cannot carry travels as `=?base64?…?=`, the base64 of its UTF-8.
"""

from __future__ import annotations

import base64
import binascii

from ...wire.errors import HeaderMismatch

__all__ = ["encode_value", "decode_value", "text_of"]

_START, _END = "=?base64?", "?="


def text_of(value: str | int | bool) -> str:
    """A parameter as text, before it is made safe for a header."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def encode_value(text: str) -> str:
    """`text` as a header value that comes back unchanged from any server."""
    plain = text.isascii() and text.isprintable() and text == text.strip(" ")
    if plain and not (text.startswith(_START) and text.endswith(_END)):
        return text
    return f"{_START}{base64.b64encode(text.encode()).decode()}{_END}"


def decode_value(value: str) -> str:
    """What a header value says, its optional white space left out; raises `HeaderMismatch` for one that is broken."""
    value = value.strip(" \t")
    if not value.isascii() or not value.isprintable():
        raise HeaderMismatch("A header value holds characters that headers must not have")
    if not (value.startswith(_START) and value.endswith(_END) and len(value) >= len(_START) + len(_END)):
        return value
    written = value[len(_START) : -len(_END)]
    try:
        raw = base64.b64decode(written, validate=True)
        if base64.b64encode(raw).decode() != written:  # bits after the last byte: others on the way may read them
            raise ValueError("not the one spelling")
        return raw.decode()
    except (binascii.Error, ValueError):
        raise HeaderMismatch("A header value is not valid base64 of UTF-8 text") from None
