"""transport/http/client/call_headers.py: headers of one call, for the endpoint they are meant for and no other."""

import asyncio

import pytest

from interlock.transport.http.client.call_headers import call_headers, headers_now, with_headers
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import LocalError

HERE = endpoint_of("https://here.example/mcp", {"Authorization": "Bearer ours", "X-App": "1"})
THERE = endpoint_of("https://there.example/mcp", {"X-App": "2"})


def test_without_any_an_endpoint_gets_its_own():
    assert headers_now(HERE) == HERE.headers


def test_of_two_with_one_name_that_of_the_call_holds():
    assert with_headers(HERE, {"authorization": "Bearer theirs"}) == {
        "authorization": "Bearer theirs",
        "X-App": "1",
    }
    assert HERE.headers["Authorization"] == "Bearer ours"


def test_no_other_endpoint_gets_them():
    token = call_headers.set((HERE, with_headers(HERE, {"Authorization": "Bearer theirs"})))
    try:
        assert headers_now(HERE)["Authorization"] == "Bearer theirs"
        assert headers_now(THERE) == THERE.headers
        twin = endpoint_of(HERE.url, {"X-App": "3"})
        assert headers_now(twin) == {"X-App": "3"}, "nor another client of the same server"
    finally:
        call_headers.reset(token)


async def test_what_a_call_starts_has_them_and_nothing_else_does():
    async def child():
        return headers_now(HERE).get("X-Call")

    async def call(value):
        call_headers.set((HERE, with_headers(HERE, {"X-Call": value})))
        await asyncio.sleep(0)
        return await asyncio.create_task(child())

    assert await asyncio.gather(*(asyncio.create_task(call(name)) for name in ("a", "b"))) == ["a", "b"]
    assert await child() is None


@pytest.mark.parametrize("headers", [{"Host": "x"}, {"Mcp-Name": "x"}, {"a b": "x"}, {"X": "a\r\nb"}], ids=str)
def test_they_are_checked_as_all_headers_are(headers):
    with pytest.raises(LocalError, match="headers"):
        with_headers(HERE, headers)
