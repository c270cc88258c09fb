"""One answer in two ASGI messages."""

from __future__ import annotations

from interlock.web.asgi.message import send_whole


async def test_an_answer_has_its_length():
    sent = []

    async def send(message):
        sent.append(message)

    await send_whole(send, 200, (("content-type", "text/plain"),), b"abc")
    head, body = sent
    assert head["status"] == 200 and (b"content-length", b"3") in head["headers"] and body["body"] == b"abc"
