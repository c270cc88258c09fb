"""transport/http/runner/cycle.py: a response in one piece is one write; everything else is left to uvicorn."""

import asyncio
import gc
import logging
import weakref

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from interlock.transport.http.runner.cycle import Cycle


class Transport:
    def __init__(self):
        self.writes, self.closed = [], False

    def write(self, data):
        self.writes.append(bytes(data))

    def writelines(self, parts):
        self.writes.append(b"".join(parts))

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def pause_reading(self): ...

    def resume_reading(self): ...


class Wire:
    """A cycle on a transport that only remembers."""

    def __init__(self, method="POST", keep_alive=True):
        self.transport, self.completed = Transport(), 0
        self.flow = FlowControl(self.transport)
        self.cycle = Cycle({"method": method}, self.transport, self.flow, keep_alive, False, self.complete)
        self.cycle.logger = logging.getLogger("tests")

    def complete(self):
        self.completed += 1

    async def respond(self, *pieces, status=200, headers=()):
        await self.cycle.send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for number, piece in enumerate(pieces, 1):
            more = number < len(pieces)
            await self.cycle.send({"type": "http.response.body", "body": piece, "more_body": more})
        return self.transport.writes


def length(number):
    return (b"content-length", b"%d" % number)


async def test_a_whole_response_is_one_write():
    wire = Wire()
    headers = [(b"content-type", b"application/json"), length(2)]
    assert await wire.respond(b"{}", headers=headers) == [
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    ]
    assert (wire.completed, wire.cycle.response_complete, wire.transport.closed) == (1, True, False)


async def test_a_long_body_goes_out_behind_its_head():
    body = b"x" * 200_000
    (written,) = await Wire().respond(body, headers=[length(len(body))])
    assert written.endswith(b"\r\n\r\n" + body)


async def test_nothing_is_written_before_there_is_a_body():
    wire = Wire()
    assert await wire.respond(headers=[length(2)]) == []
    assert not wire.cycle.response_started


@pytest.mark.parametrize(
    ("wire", "pieces", "headers", "closes"),
    [
        ({}, [b"a", b"b"], [], False),
        ({}, [b"ab"], [], False),
        ({}, [b"ab"], [(b"transfer-encoding", b"chunked")], False),
        ({"method": "GET"}, [b"ab"], [length(2)], False),
        ({"method": "HEAD"}, [b"ab"], [length(2)], False),
        ({"keep_alive": False}, [b"ab"], [length(2)], True),
        ({}, [b"ab"], [length(2), (b"connection", b"close")], True),
    ],
)
async def test_other_responses_are_as_uvicorn_writes_them(wire, pieces, headers, closes):
    wire = Wire(**wire)
    written = b"".join(await wire.respond(*pieces, headers=headers))
    assert written.startswith(b"HTTP/1.1 200 OK\r\n")
    assert (wire.completed, wire.transport.closed) == (1, closes)


@pytest.mark.parametrize("value", [b"a\r\nevil: yes", b"a\nevil: yes", b"a\r"])
async def test_a_header_cannot_end_its_line(value):
    wire = Wire()
    with pytest.raises(RuntimeError):
        await wire.respond(b"ab", headers=[length(2), (b"x", value)])
    assert wire.transport.writes == []


async def test_a_wrong_length_is_no_response():
    with pytest.raises(RuntimeError, match="longer"):
        await Wire().respond(b"abc", headers=[length(2)])


async def test_a_peer_that_reads_nothing_is_waited_for_and_one_that_is_gone_gets_nothing():
    wire = Wire()
    wire.flow.pause_writing()
    sending = asyncio.create_task(wire.respond(b"ab", headers=[length(2)]))
    await asyncio.sleep(0)
    assert wire.transport.writes == []
    wire.cycle.disconnected = True
    wire.flow.resume_writing()
    assert await sending == []


async def test_an_application_that_fails_behind_its_head_is_answered_for():
    wire = Wire()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [length(2)]})
        raise ValueError("inside")

    await wire.cycle.run_asgi(app)
    written = b"".join(wire.transport.writes)
    assert written.startswith(b"HTTP/1.1 500 ") and written.endswith(b"Internal Server Error")
    assert (wire.completed, wire.cycle.response_complete) == (1, True)


async def test_what_is_cancelled_is_told_that_nobody_is_there(caplog):
    async def cancelled(scope, receive, send):
        raise asyncio.CancelledError

    wire = Wire()
    await wire.cycle.run_asgi(cancelled)
    assert b"".join(wire.transport.writes).startswith(b"HTTP/1.1 503 ") and wire.transport.closed
    assert b"retry-after: 1" in b"".join(wire.transport.writes) and caplog.records == []


async def test_an_answer_that_breaks_off_is_cut_without_a_word(caplog):
    async def broken_off(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})

    wire = Wire()
    await wire.cycle.run_asgi(broken_off)
    assert wire.transport.closed and not wire.cycle.response_complete
    assert not b"".join(wire.transport.writes).endswith(b"0\r\n\r\n") and caplog.records == []


async def test_it_begins_as_one_of_uvicorn_does():
    """Which sets everything anew for each: what a later version adds must be here, too."""
    wire = Wire()
    given = {"scope": wire.cycle.scope, "transport": wire.transport, "flow": wire.flow, "logger": wire.cycle.logger}
    given |= {"access_logger": wire.cycle.access_logger, "access_log": False, "default_headers": []}
    given |= {"expect_100_continue": False, "keep_alive": True, "on_response": wire.complete}
    theirs = vars(RequestResponseCycle(**given, message_event=wire.cycle.message_event))
    assert {name: getattr(wire.cycle, name) for name in theirs} == theirs


class Served(Wire):
    """The same in a task that the server knows of."""

    def __init__(self, app):
        super().__init__()
        self.tasks = set()
        self.task = asyncio.create_task(self.cycle.run_asgi(app))
        self.tasks.add(self.task)
        self.cycle.task, self.cycle.tasks = self.task, self.tasks

    async def ended(self):
        async with asyncio.timeout(20):
            await asyncio.wait([self.task])
        assert not self.tasks and self.cycle.task is None
        self.cycle.on_response()
        return self.completed  # what it is told behind its end is told nobody


async def answers(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [length(2)]})
    await send({"type": "http.response.body", "body": b"{}"})


async def fails(scope, receive, send):
    raise ValueError("inside")


async def waits(scope, receive, send):
    await asyncio.Event().wait()


@pytest.mark.parametrize("app", [answers, fails])
async def test_what_is_over_is_no_task_of_the_server(app):
    assert await Served(app).ended() == 1


async def test_what_is_cancelled_twice_is_no_task_of_the_server():
    """The second time while it waits for a client that does not read to take the 503."""
    wire = Served(waits)
    wire.flow.pause_writing()
    await asyncio.sleep(0)
    for _ in range(2):
        wire.task.cancel()
        await asyncio.sleep(0)
    assert await wire.ended() == 0 and wire.task.cancelled()


async def test_it_is_freed_with_its_task_without_a_collection():
    wire = Served(answers)
    await wire.ended()
    freed = weakref.ref(wire.cycle)
    gc.disable()
    try:
        del wire
        assert freed() is None
    finally:
        gc.enable()


# --- without messages ---


@pytest.mark.parametrize(
    ("pieces", "sizes"),
    [([b"abc"], [3]), ([b"a", b"bc", b"d"], [1, 3, 4]), ([b"", b"ab", b"", b"c"], [0, 2, 2, 3])],
)
async def test_a_body_in_pieces_is_put_together(pieces, sizes):
    wire = Wire()
    assert [wire.cycle.add(piece) for piece in pieces] == sizes
    assert wire.cycle.take_body() is None  # there may be more
    wire.cycle.more_body = False
    body = wire.cycle.take_body()
    assert body == b"".join(pieces) and type(body) is bytes


async def test_who_takes_the_pieces_one_by_one_gets_each_once():
    wire, found = Wire(), []
    for piece in (b"ab", b"cd", b"ef"):
        wire.cycle.add(piece[:1])
        wire.cycle.add(piece[1:])
        found.append((await wire.cycle.receive())["body"])
    assert found == [b"ab", b"cd", b"ef"] and wire.cycle.add(b"g") == 1


@pytest.mark.parametrize("respond", [Wire.respond, None])
async def test_who_was_answered_is_not_asked_for_his_body_any_more(respond):
    wire = Wire()
    wire.cycle.waiting_for_100_continue = True
    if respond is None:
        assert wire.cycle.answer_json(400, b"{}")
    else:
        await respond(wire, b"{}", headers=[length(2)])
    assert await wire.cycle.receive() == {"type": "http.disconnect"}
    assert len(wire.transport.writes) == 1


async def test_who_takes_a_long_body_lets_the_rest_come():
    wire = Wire()
    wire.cycle.more_body = False
    wire.flow.pause_reading()
    assert wire.cycle.take_body() == b"" and not wire.flow.read_paused


async def test_a_body_that_is_here_is_taken_at_once():
    wire = Wire()
    wire.cycle.body += b"abc"
    wire.cycle.more_body = False
    wire.cycle.message_event.set()
    assert wire.cycle.take_body() == b"abc"
    gone = asyncio.ensure_future(wire.cycle.receive())  # what comes next is the end of the connection
    await asyncio.sleep(0)
    assert not gone.done()
    wire.cycle.disconnected = True
    wire.cycle.message_event.set()
    assert await gone == {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("attribute", "value"), [("more_body", True), ("disconnected", True), ("waiting_for_100_continue", True)]
)
async def test_a_body_that_is_not_here_is_waited_for(attribute, value):
    wire = Wire()
    wire.cycle.more_body = False
    setattr(wire.cycle, attribute, value)
    assert wire.cycle.take_body() is None


@pytest.mark.parametrize("body", [b"{}", b"x" * 200_000])
@pytest.mark.parametrize("status", [200, 400])
async def test_an_answer_without_messages_is_the_same(status, body):
    headers = [(b"content-type", b"application/json"), length(len(body))]
    wire = Wire()
    assert wire.cycle.answer_json(status, body)
    assert wire.transport.writes == await Wire().respond(body, status=status, headers=headers)
    assert (wire.completed, wire.cycle.response_complete) == (1, True)


@pytest.mark.parametrize(
    "make",
    [
        lambda wire: wire.cycle.scope.update(method="GET"),
        lambda wire: setattr(wire.cycle, "keep_alive", False),
        lambda wire: setattr(wire.cycle, "response_started", True),
        lambda wire: setattr(wire.cycle, "held", {}),
        lambda wire: setattr(wire.cycle, "disconnected", True),
        lambda wire: wire.flow.pause_writing(),
    ],
)
async def test_any_other_answer_takes_the_usual_way(make):
    wire = Wire()
    make(wire)
    assert not wire.cycle.answer_json(200, b"{}")
    assert not wire.transport.writes
