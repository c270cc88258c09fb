"""Pages that servers ask to be opened: looked at as text only, and shown so that nobody mistakes where they lead.

Only the user's own browser fetches anything (client/elicitation#safe-url-handling): neither the page nor its title nor
its icon is looked at here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable
from urllib.parse import SplitResult, urlsplit

import msgspec

from ...wire.errors import InvalidParams
from ...wire.escaping import display, is_visible

__all__ = ["Opener", "Page", "open_in_browser", "page_at"]

Opener = Callable[[str], Awaitable[bool]]
"""Shows the page at an address to the user; False where that cannot be."""
_LONGEST = 8_192
_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){0,126}\.?")


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page and what a person should see before agreeing to open it: all of `shown`, `host` above all."""

    url: str
    """What is opened, exactly: ASCII, as browsers send it."""
    shown: str
    host: str
    """As it is looked up: a name of other letters in the xn-- form, which cannot be mistaken for another."""
    warnings: tuple[str, ...] = ()


async def open_in_browser(url: str) -> bool:
    """By the means of the platform, never by a shell: neither we nor a model can see what happens there."""
    import webbrowser  # few are ever asked for it

    return await asyncio.to_thread(webbrowser.open, url)


def page_at(url: object) -> Page:
    """The page at `url`; an address that no careful person would open is refused."""
    if not isinstance(url, str) or not 0 < len(url) <= _LONGEST:
        raise InvalidParams(f"url is no text of at most {_LONGEST} characters")
    if not is_visible(url) or any(char.isspace() for char in url) or "\\" in url:
        raise InvalidParams("url holds characters that are drawn as nothing or as something else")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidParams("url is malformed") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidParams("url is neither http:// nor https://")
    if parts.username is not None or parts.password is not None:
        raise InvalidParams("url holds a user name or a password, which hides its host")
    name = _as_looked_up(host)
    return Page(url=_ascii(parts, name, port), shown=display(url, _LONGEST), host=name, warnings=_warnings(parts, name))


def _as_looked_up(host: str) -> str:
    if ":" in host:
        return host
    try:
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not _NAME.fullmatch(name):
        raise InvalidParams("the host of url is no name that can be looked up")
    return name


def _ascii(parts: SplitResult, host: str, port: int | None) -> str:
    """The same address without letters that look like others; what was quoted stays as it is."""
    place = f"[{host}]" if ":" in host else host
    rest = parts._replace(netloc=place if port is None else f"{place}:{port}").geturl()
    return "".join(char if char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode()) for char in rest)


def _warnings(parts: SplitResult, host: str) -> tuple[str, ...]:
    found: list[str] = []
    if any(label.startswith("xn--") for label in host.split(".")):
        found.append(f"its name is written in letters that may look like others: it is {host}")
    if parts.scheme == "http" and not _is_here(host):
        found.append("it is not encrypted: anybody on the way can read and change it")
    if _is_address(host) and not _is_here(host):
        found.append("it is a bare address, not a name")
    return tuple(found)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host.replace(".", "").isdigit() or host.startswith("0x")  # 127.1, 2130706433: spelt for machines
    return True


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
