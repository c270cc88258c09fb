"""Logins: a listener that is hit by everybody, a URL that is pasted, a function of the owner's."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock.auth.client.browser_login import Called, Loopback, Pasted, login_of
from interlock.auth.client.providers import OAuth
from interlock.wire.errors import AuthorizationFailed, LocalError, LoginRequired

STATE = "s" * 43


async def ask(port: int, data: bytes) -> bytes:
    """Whatever is answered to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(20):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(target: str, host: str, verb: str = "GET") -> bytes:
    return f"{verb} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()


def wrong_hits(host: str) -> list[bytes]:
    good = f"/callback?code=c&state={STATE}"
    return [
        get("/callback", host),
        get("/callback?code=evil", host),
        get("/callback?code=evil&state=", host),
        get(f"/callback?code=evil&state={STATE}x", host),
        get(f"/callback?code=evil&state={STATE.upper()}", host),
        get(f"/callback?code=evil&state={STATE}&state=x", host),
        get("/callback?error=access_denied&state=<script>alert(1)</script>", host),
        get("/callback?state=%C3%A4", host),
        get("/callback?" + "a=1&" * 100, host),
        get(f"/other?code=c&state={STATE}", host),
        get(f"/callback/?code=c&state={STATE}", host),
        get(f"http://evil/callback?code=c&state={STATE}", host),
        get(good, "evil.example"),
        get(good, "localhost:1"),
        get(good, host, "POST"),
        get(good, host, "HEAD"),
        f"GET {good} HTTP/1.1\r\n\r\n".encode(),
        get(good, host).replace(b"\r\n\r\n", b"\r\nHost: evil\r\n\r\n"),
        b"\x16\x03\x01\x00\r\n\r\n",
        b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    ]


async def test_only_the_answer_that_is_waited_for_settles_a_login():
    browsed: list[str] = []
    login = Loopback(browse=lambda url: browsed.append(url) or True)
    try:
        redirect = await login.prepare(None)
        port = int(redirect.removeprefix("http://127.0.0.1:").removesuffix("/callback"))
        early = await ask(port, get(f"/callback?code=c&state={STATE}", f"127.0.0.1:{port}"))
        assert b"400" in early, "before anybody was sent away nothing is waited for"
        visit = asyncio.create_task(login.visit("https://as.example/authorize", STATE))
        while not browsed:
            await asyncio.sleep(0.005)
        for hit in wrong_hits(f"127.0.0.1:{port}"):
            page = await ask(port, hit)
            assert b"200 OK" not in page and b"<script" not in page and b"evil" not in page
            assert not visit.done()
        page = await ask(port, get(f"/callback?code=c&state={STATE}&iss=i", f"127.0.0.1:{port}"))
        assert (
            b"200 OK" in page and b"default-src 'none'" in page and b"no-store" in page and STATE.encode() not in page
        )
        assert await visit == f"{redirect}?code=c&state={STATE}&iss=i"
    finally:
        await login.close()


async def test_many_who_say_nothing_do_not_keep_out_the_one_who_is_waited_for():
    login = Loopback(browse=lambda url: True)
    idle: list[asyncio.StreamWriter] = []
    try:
        redirect = await login.prepare(None)
        port = int(redirect.removeprefix("http://127.0.0.1:").removesuffix("/callback"))
        visit = asyncio.create_task(login.visit("https://as.example/authorize", STATE))
        for number in range(100):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            idle.append(writer)
            writer.write(b"GET /callback?state=" + b"x" * number)
        hits = [get(f"/callback?code={each}&state={STATE}", f"127.0.0.1:{port}") for each in ("one", "two")]
        pages = await asyncio.gather(*(ask(port, hit) for hit in hits))
        assert all(b"200 OK" in page for page in pages) and len(login._open) <= 32
        assert await visit in [f"{redirect}?code={each}&state={STATE}" for each in ("one", "two")]
    finally:
        await login.close()
        for writer in idle:
            writer.transport.abort()
        await asyncio.sleep(0)


async def test_the_port_of_the_last_time_is_taken_again_if_it_is_free():
    first = Loopback()
    redirect = await first.prepare(None)
    second = Loopback()
    try:
        other = await second.prepare(redirect)
        assert other != redirect and other.endswith("/callback")
    finally:
        await first.close()
        await second.close()
    third = Loopback()
    try:
        assert await third.prepare(redirect) == redirect
    finally:
        await third.close()


async def test_the_host_and_the_path_are_those_that_were_wanted():
    login = Loopback()
    try:
        redirect = await login.prepare("http://localhost/x")
        assert redirect.startswith("http://localhost:") and redirect.endswith("/x")
    finally:
        await login.close()


async def test_a_browser_that_cannot_be_opened_is_told_to_the_user():
    said: list[str] = []
    login = Loopback(browse=lambda url: False, say=said.append)
    try:
        await login.prepare(None)
        visit = asyncio.create_task(login.visit("https://as.example/authorize", STATE))
        while not said:
            await asyncio.sleep(0.005)
        visit.cancel()
        await asyncio.wait([visit])
        assert "https://as.example/authorize" in said[0]
    finally:
        await login.close()


@pytest.mark.parametrize("redirect", ["https://app.example/cb", "http://example.com/cb"])
async def test_nobody_listens_elsewhere(redirect):
    with pytest.raises(LocalError, match="another machine"):
        await Loopback().prepare(redirect)


async def test_a_url_is_pasted():
    said: list[str] = []
    login = Pasted(said.append, lambda: " http://127.0.0.1:33418/callback?code=c \n")
    assert (await login.prepare(None)).startswith("http://127.0.0.1:")
    assert await login.prepare("http://127.0.0.1:5/x") == "http://127.0.0.1:5/x"
    assert await login.visit("https://as.example/a", STATE) == "http://127.0.0.1:33418/callback?code=c"
    assert "https://as.example/a" in said[0]
    await login.close()


@pytest.mark.parametrize("line", ["", "\n"])
async def test_what_is_not_pasted_is_told_as_such(line):
    """Without a terminal stdin ends at once: no browser came back from anywhere."""
    with pytest.raises(AuthorizationFailed, match="no URL was pasted"):
        await Pasted(lambda text: None, lambda: line).visit("https://as.example/a", STATE)


async def test_who_does_not_paste_does_not_hold_anybody():
    waits = threading.Event()
    login = Pasted(lambda text: None, lambda: str(waits.wait(20)))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await login.visit("https://as.example/a", STATE)
    waits.set()


async def test_the_owner_has_a_way_of_his_own():
    async def mine(url: str) -> str:
        return url + "?code=c"

    login = login_of(OAuth(login=mine, redirect_uri="https://app.example/cb"))
    assert isinstance(login, Called)
    assert await login.prepare("https://app.example/cb") == "https://app.example/cb"
    assert await login.visit("https://as.example/a", STATE) == "https://as.example/a?code=c"
    await login.close()
    assert isinstance(login_of(OAuth()), Loopback) and isinstance(login_of(OAuth(login="paste")), Pasted)
    with pytest.raises(LoginRequired):
        login_of(OAuth(login=None))
