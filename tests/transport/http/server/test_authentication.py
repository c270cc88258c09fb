"""Who says who asks: nobody, a hook, or a protection; and never two of them."""

from __future__ import annotations

import pytest

from interlock.transport.http.server.authentication import ANYBODY, Admission
from interlock.web.asgi.guard import Guard
from interlock.web.asgi.message import Headers, HttpRefusal
from interlock.wire.errors import LocalError
from interlock.wire.exchange import ANONYMOUS, Principal
from support.auth_tokens import protection


class Call:
    """What is needed of a call while its credentials are looked at."""

    async def check(self, waiting):
        return await waiting


def door(authenticate=None, auth=None, handler=None):
    return Admission("/mcp", handler, Guard(body_bytes=100), authenticate=authenticate, auth=auth)


def test_an_open_door_asks_nobody():
    assert not door().asks and not door().serves("/.well-known/oauth-protected-resource")
    assert ANYBODY.principal == ANONYMOUS and not ANYBODY.scopes
    assert door().lacking(ANYBODY, b"{}") is None


async def test_a_hook_says_who_asks():
    found = await door(lambda headers: Principal("i", headers["x"])).who(Call(), Headers([(b"x", b"ada")]), {})
    assert found.principal == Principal("i", "ada")
    assert await door(lambda headers: HttpRefusal(401)).who(Call(), Headers([]), {}) == HttpRefusal(401)


@pytest.mark.parametrize("hook", [lambda headers: None, lambda headers: True, lambda headers: 1 / 0])
async def test_nobody_gets_in_by_mistake(hook):
    found = await door(hook).who(Call(), Headers([]), {})
    assert isinstance(found, HttpRefusal) and found.status == 500


def test_a_handler_may_bring_its_protection():
    class Handler:
        auth = protection()

    assert door(handler=Handler()).asks and door(handler=Handler()).serves("/.well-known/oauth-protected-resource/mcp")
    with pytest.raises(LocalError, match="both"):
        door(lambda headers: HttpRefusal(401), handler=Handler())


async def test_a_fault_of_ours_lets_nobody_in(caplog, monkeypatch):
    guarded = door(auth=protection())

    async def broken(*given):
        raise OverflowError

    monkeypatch.setattr(guarded._protector, "admit", broken)
    found = await guarded.who(Call(), Headers([]), {"path": "/mcp", "method": "POST"})
    assert isinstance(found, HttpRefusal) and found.status == 500 and "could not be judged" in caplog.text
