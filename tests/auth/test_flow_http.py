"""Requests of flows, made: what they say, and where they may not go."""

from __future__ import annotations

import pytest

from interlock.auth.flow import Ask
from interlock.auth.flow_http import asked
from interlock.web.outbound.endpoint import endpoint_of
from interlock.wire.errors import InterlockError
from support.http_peer import HttpPeer, http


async def test_forms_and_json_go_out_as_such():
    async with HttpPeer(lambda request, stream: http(200, request.body, "x-seen: yes")) as peer:
        base = endpoint_of(peer.url, {"x-own": "secret"})
        form = Ask(method="POST", url=peer.url, form={"a": "b c"}, policy="typed", headers={"x-more": "1"})
        said = await asked(form, base)
        assert (said.status, said.body, said.headers["x-seen"]) == (200, b"a=b+c", "yes")
        said = await asked(Ask(method="POST", url=peer.url, json={"a": 1}), base)
        assert said.body == b'{"a":1}'
        kinds = [request.header("content-type") for request in peer.requests]
        assert kinds == ["application/x-www-form-urlencoded", "application/json"]
        assert [request.header("x-own") for request in peer.requests] == [None, None]
        assert peer.requests[0].header("x-more") == "1"


async def test_what_a_stranger_names_is_not_inside():
    with pytest.raises(InterlockError):
        await asked(Ask(url="http://127.0.0.1:1/keys"), endpoint_of("https://as.example.com"))
