"""One model service over HTTP, and everything it may do wrong."""

import asyncio
import json
import logging

import pytest

from interlock.host.models.http_service import Service, key_in
from interlock.host.models.model import ModelBusy, ModelError, ModelRefused
from interlock.wire.errors import LocalError
from support.http_peer import HttpPeer, chunk, chunked, http
from support.model_api import stream_of

KEY = "sk-verysecretverysecret1234"


def service(peer, **more):
    more = {"tries": 3, "silence": 20.0, **more}
    return Service(peer.url, {"Authorization": f"Bearer {KEY}"}, **more)


async def read(found):
    return [event.data async for event in found.events({"ask": 1})]


def error(status, message="no", *headers):
    return http(status, json.dumps({"type": "error", "error": {"message": message}}).encode(), *headers)


def then(*answers):
    left = iter(answers)
    return lambda request, stream: next(left)


EVENTS = [b"data: 1\n\n", b"data: 2\n\n"]


async def test_events_come_as_they_are_sent():
    async with HttpPeer(then(stream_of(EVENTS))) as peer:
        assert await read(service(peer)) == [b"1", b"2"]
    request = peer.requests[0]
    assert (request.verb, request.message, request.header("authorization")) == ("POST", {"ask": 1}, f"Bearer {KEY}")
    assert request.header("content-type") == "application/json"


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_who_is_busy_is_asked_again(status):
    async with HttpPeer(then(error(status, "later", "Retry-After: 0"), stream_of(EVENTS))) as peer:
        assert await read(service(peer)) == [b"1", b"2"]
    assert len(peer.requests) == 2


async def test_who_is_busy_after_all_is_asked_again(monkeypatch):
    monkeypatch.setattr("interlock.host.models.http_service._FIRST_PAUSE", 0.001)
    told = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Oh"}}\n\n'
    async with HttpPeer(then(stream_of([told]), stream_of(EVENTS))) as peer:
        assert await read(service(peer)) == [b"1", b"2"]
    other = told.replace(b"overloaded_error", b"invalid_request_error")
    async with HttpPeer(then(stream_of([other]))) as peer:
        assert len(await read(service(peer))) == 1  # whoever reads it knows what it means
    async with HttpPeer(then(stream_of([*EVENTS, told]))) as peer:
        assert len(await read(service(peer))) == 3


async def test_but_not_for_ever_and_not_after_a_long_time():
    async with HttpPeer(lambda *_: error(529, "Overloaded", "Retry-After: 0")) as peer:
        with pytest.raises(ModelBusy, match="529: Overloaded") as found:
            await read(service(peer))
    assert (len(peer.requests), found.value.retry_after) == (3, 0.0)
    async with HttpPeer(lambda *_: error(429, "tomorrow", "Retry-After: 86400")) as peer:
        with pytest.raises(ModelBusy) as found:
            await read(service(peer))
    assert (len(peer.requests), found.value.retry_after) == (1, 86400.0)


@pytest.mark.parametrize("said", ["-1", "nan", "inf", "Wed, 21 Oct 2026 07:28:00 GMT", "soon"])
async def test_a_time_that_is_none_is_not_taken_for_one(said):
    async with HttpPeer(lambda *_: error(429, "later", f"Retry-After: {said}")) as peer:
        with pytest.raises(ModelBusy) as found:
            await read(service(peer, tries=1))
    assert found.value.retry_after is None


@pytest.mark.parametrize("status, hint", [(400, None), (401, "key"), (403, "key"), (404, "base URL"), (413, None)])
async def test_a_refusal_is_told_at_once(status, hint):
    async with HttpPeer(lambda *_: error(status, "you may not\x1b[2J")) as peer:
        with pytest.raises(ModelRefused, match=rf"{status}: you may not\\x1b") as found:
            await read(service(peer))
    assert len(peer.requests) == 1
    assert (found.value.hint or "").find(hint or "") >= 0


@pytest.mark.parametrize("body", [b"<html>no</html>", b"", b"[1]", b'{"error": "plain"}', b"\xff\xfe"])
async def test_errors_of_any_shape_are_read(body):
    async with HttpPeer(lambda *_: http(400, body, kind="text/html")) as peer:
        with pytest.raises(ModelRefused, match="400"):
            await read(service(peer))


async def test_a_key_that_is_repeated_is_not_passed_on(caplog):
    caplog.set_level(logging.DEBUG)
    async with HttpPeer(lambda *_: error(401, f"Incorrect API key provided: {KEY}")) as peer:
        with pytest.raises(ModelRefused) as found:
            await read(service(peer))
        assert KEY not in repr(service(peer))
    assert KEY not in str(found.value) + repr(found.value) + found.value.explain() + caplog.text


async def test_what_is_no_stream_is_an_error():
    async with HttpPeer(lambda *_: http(200, b"<p>", kind="text/html")) as peer:
        with pytest.raises(ModelError, match="text/html"):
            await read(service(peer))


async def test_who_does_not_stream_answers_at_once():
    async with HttpPeer(lambda *_: http(200, b'{"all": 1}')) as peer:
        assert await read(service(peer)) == [b'{"all": 1}']


async def test_an_answer_without_end_is_cut(monkeypatch):
    monkeypatch.setattr("interlock.host.models.http_service._LONGEST_ANSWER", 15)
    async with HttpPeer(lambda *_: stream_of(EVENTS)) as peer:
        with pytest.raises(ModelError, match="more than 15 bytes"):
            await read(service(peer))


async def test_a_stream_that_breaks_off_is_not_asked_for_twice():
    async def script(request, stream):
        await stream.write(chunked() + chunk(EVENTS[0]))
        stream.reset()

    async with HttpPeer(script) as peer:
        found = []
        with pytest.raises(ModelError, match="broke"):
            async for event in service(peer).events({}):
                found.append(event.data)
    assert (found, len(peer.requests)) == ([b"1"], 1)


async def test_silence_ends():
    async def script(request, stream):
        await stream.write(chunked() + chunk(EVENTS[0]))
        await stream.gone()

    async with HttpPeer(script) as peer:
        with pytest.raises(ModelError, match=r"silent for 0\.2 s"):
            await read(service(peer, silence=0.2))


async def test_who_stops_reading_hangs_up():
    hung_up = asyncio.Event()

    async def script(request, stream):
        await stream.write(chunked() + chunk(EVENTS[0]))
        await stream.gone()
        hung_up.set()

    async with HttpPeer(script) as peer:
        events = service(peer).events({})
        assert (await anext(events)).data == b"1"
        await events.aclose()
        async with asyncio.timeout(20):
            await hung_up.wait()


async def test_nobody_there_is_told_after_the_tries(monkeypatch):
    async with HttpPeer(lambda *_: None) as peer:
        pass
    monkeypatch.setattr("interlock.host.models.http_service._FIRST_PAUSE", 0.001)
    with pytest.raises(ModelBusy, match="could not connect"):
        await read(service(peer))


async def test_an_event_without_end_is_cut(monkeypatch):
    monkeypatch.setattr("interlock.host.models.http_service._LONGEST_EVENT", 1000)
    async with HttpPeer(lambda *_: stream_of([b"data: " + b"x" * 2000])) as peer:
        with pytest.raises(ModelError, match="more than 1000 bytes"):
            await read(service(peer))


async def test_a_redirect_to_elsewhere_takes_no_key_there():
    async with HttpPeer(lambda *_: http(200)) as other:
        peer = HttpPeer(lambda *_: http(307, b"", f"Location: {other.url}"))
        async with peer:
            with pytest.raises(ModelRefused, match="307"):
                await read(service(peer))
    assert other.requests == []


def test_keys_come_from_the_environment():
    assert key_in({"K": " x "}, "K", "it") == "x"
    with pytest.raises(LocalError, match="set K"):
        key_in({"K": " "}, "K", "it")


def test_only_this_machine_is_spoken_to_in_the_clear():
    with pytest.raises(LocalError, match="http"):
        Service("http://192.0.2.1/v1", {})
