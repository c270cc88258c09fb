"""Errors that others made of our requests: nothing of a request is left in them."""

from __future__ import annotations

import ssl
import traceback

import aiohttp
import pytest
import yarl
from multidict import CIMultiDict, CIMultiDictProxy

from interlock.web.outbound.endpoint import endpoint_of
from interlock.web.outbound.errors import bare, complaint
from interlock.web.outbound.fetch import fetch
from interlock.wire.errors import ConnectionLost, RemoteError
from support.certificates import self_signed
from support.http_peer import HttpPeer, http

SECRET = "s3cret-of-the-owner"
BROKEN = {
    "no HTTP": b"SSH-2.0-x\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a name with a gap": b"HTTP/1.1 200 OK\r\nContent Length: 2\r\n\r\n{}",
    "a long line": b"HTTP/1.1 200 " + b"x" * 20_000 + b"\r\n\r\n",
}


def test_an_error_says_where_and_what_but_not_with_which_words():
    url = yarl.URL(f"https://h.example:8443/path?token={SECRET}")
    headers = CIMultiDictProxy(CIMultiDict({"Authorization": f"Bearer {SECRET}"}))
    before = aiohttp.RequestInfo(url, "POST", headers, url)
    error = aiohttp.ClientResponseError(before, (), status=400, message="bad", headers=CIMultiDict({"X": SECRET}))
    assert SECRET in repr(error)
    assert bare(error) is error and (error.status, error.message) == (400, "bad")
    assert SECRET not in f"{error!r} {error} {error.args!r} {error.__dict__!r}" and "h.example:8443" in str(error)


def test_a_complaint_is_one_line_without_a_picture():
    url = yarl.URL("https://h.example/")
    asked = aiohttp.RequestInfo(url, "POST", CIMultiDictProxy(CIMultiDict()), url)
    said = "Bad status line:\n  Expected HTTP/:\n\n  b'SSH-2.0'\n    ^"
    assert complaint(aiohttp.ClientResponseError(asked, (), message=said)) == "Bad status line: Expected HTTP/"


@pytest.mark.parametrize("what", BROKEN)
async def test_no_cause_of_an_error_shows_the_request(what):
    async def broken(request, stream):
        await stream.write(BROKEN[what])
        stream.close()

    async with HttpPeer(broken) as peer:
        endpoint = endpoint_of(f"{peer.url}?key={SECRET}", {"Authorization": f"Basic {SECRET}"})
        with pytest.raises(RemoteError) as failed:
            await fetch(endpoint, "POST", b"x")
    shown, error = ["".join(traceback.format_exception(failed.value))], failed.value
    while error is not None:
        shown.append(f"{error!r} {error} {error.__dict__!r}")
        error = error.__cause__ or error.__context__
    assert len(shown) > 2 and SECRET not in "\n".join(shown)


async def trusted(monkeypatch, peer, certificate=None, host="127.0.0.1"):
    """What is told when this peer is asked by that name, by one who trusts that certificate."""
    trust = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trust)  # stands for the system's store
    with pytest.raises(ConnectionLost) as failed:
        await fetch(endpoint_of(f"https://{host}:{peer.port}/"))
    return str(failed.value)


async def test_a_certificate_that_is_not_trusted_says_what_to_do(tmp_path, monkeypatch):
    context, certificate = self_signed(tmp_path)
    async with HttpPeer(lambda r, s: http(200), tls=context) as peer:
        unknown = await trusted(monkeypatch, peer)
        assert "self-signed certificate; if you trust it" in unknown and "SSL_CERT_FILE" in unknown
        another = await trusted(monkeypatch, peer, certificate, "localhost")
        assert "Hostname mismatch" in another and "SSL_CERT_FILE" not in another


async def test_who_speaks_no_tls_is_told_apart(monkeypatch):
    async def plain(_, stream):
        await stream.reader.read(100)
        await stream.write(http(400))
        stream.close()

    peer = HttpPeer(plain, read=False)
    async with peer:
        assert (await trusted(monkeypatch, peer)).endswith("does not speak TLS; is it http://?")
