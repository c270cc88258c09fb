"""transport/http/runner/head_cache.py: heads that are compared instead of read, and nothing else is taken for one of
them."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
import uvicorn
from httptools import HttpParserError, HttpRequestParser
from uvicorn.server import ServerState

from interlock.transport.http.runner.head_cache import Heads
from interlock.transport.http.runner.protocol import Bounded, bounded_by

TARGET = {"method": "POST", "path": "/mcp"}


def post(body=b"hello", *, length=None, before=(b"Host: localhost",), behind=(b"Accept: */*",)):
    said = b"%d" % len(body) if length is None else length
    lines = [b"POST /mcp HTTP/1.1", *before, b"Content-Length: " + said, *behind, b"", body]
    return b"\r\n".join(lines)


class Lines(list):
    """What a parser calls out."""

    def on_header(self, name, value):
        self.append((name.lower(), value))


def lines_of(data):
    lines = Lines()
    with suppress(HttpParserError):
        HttpRequestParser(lines).feed_data(data)
    return lines


def learnt(data, lines=None):
    heads = Heads()
    heads.learn(data, lines_of(data) if lines is None else lines, TARGET)
    return heads


def test_a_head_that_was_read_is_known_with_another_length_and_another_body():
    heads = learnt(post(b"hello"))
    head, length, body = heads.find(post(b"a longer body"))
    assert (length, body, head.target) == (b"13", b"a longer body", TARGET)
    assert head.lines_with(length) == [(b"host", b"localhost"), (b"content-length", b"13"), (b"accept", b"*/*")]
    assert head.lines[1] == (b"content-length", b"5"), "what one request is given, the next does not find"


@pytest.mark.parametrize(
    "data",
    [
        post(behind=(b"Accept: */+",)),
        post(before=(b"Host: localhost1",)),
        post(b"hello")[:-1],
        post(b"hello") + b"!",
        post(b"hello") + post(b"hello"),
        post(b"", length=b"0"),
        post(b"hello", length=b"+5"),
        post(b"hello", length=b"5 "),
        post(b"hello", length=b" 5"),
        post(b"hello", length=b"0x5"),
        post(b"hello", length=b"\xb2"),
        post(b"hello", length=b""),
        post(b"hello", length=b"000005"),
        post(b"1" * 100_000),
        b"\r\n" + post(b"hello"),
        post(b"hello", length=b"5" * 400)[:200],
    ],
)
def test_what_differs_in_anything_else_is_left_to_the_parser(data):
    assert learnt(post()).find(data) is None


def test_the_digits_of_another_line_are_not_those_of_the_length():
    """Else a body would end where no proxy before us sees its end."""
    trap = (b"X-Content-Length: 5", b"Host: localhost")
    heads = learnt(post(b"hello", before=trap))
    longer = post(b"hello!!", length=b"5", before=(b"X-Content-Length: 7", b"Host: localhost"))
    assert heads.find(longer) is None
    assert heads.find(post(b"hello!!", before=trap)) is not None


@pytest.mark.parametrize(
    "data",
    [
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + post(),
        post() + b"\r\n",
        post() + b"GET / HTTP/1.1\r\n\r\n",
        post()[:-1],
        post(b"hello!"[:5], length=b"6"),
        b"\r\n" + post(),
        post(b"", length=b"0") + b"x",
        post(behind=(b"Accept: */*,", b" text/html")),
        post(behind=(b"Transfer-Encoding: chunked",)),
        post(behind=(b"Content-Length: 5",)),
        post(b"a" * 100_000),
        post(behind=(b"Accept: " + b"a" * 2048,)),
        post(behind=[b"A%d: 1" % number for number in range(23)]),
        b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /mcp HTTP/1.1\nContent-Length: 5\n\nhello",
    ],
)
def test_what_is_not_one_whole_plain_request_is_not_remembered(data):
    heads = learnt(data)
    assert heads.find(data) is None


def test_lines_that_a_parser_left_out_or_read_otherwise_are_not_remembered():
    data = post(behind=(b"X-More: 1",))
    assert learnt(data, lines_of(data)).find(data) is not None
    assert learnt(data, lines_of(data)[:-1]).find(data) is None
    assert (
        learnt(post(), [(b"host", b"localhost"), (b"content-length", b"6"), (b"accept", b"*/*")]).find(post()) is None
    )


def test_the_white_space_around_a_length_is_part_of_its_head():
    tight, wide = post(length=b"5").replace(b": 5", b":5"), post(length=b"5").replace(b": 5", b":\t 5")
    assert learnt(tight).find(tight) is not None and learnt(tight).find(wide) is None
    assert learnt(wide).find(wide) is not None and learnt(wide).find(tight) is None
    assert learnt(post(length=b"5 ")).find(post(length=b"5 ")) is None, "behind it, that is left to the parser"


def named(number):
    return post(before=(b"Mcp-Name: %d" % number,))


def heard(heads, data):
    """As a connection uses them: was it known?"""
    if heads.find(data) is not None:
        return True
    heads.learn(data, lines_of(data), TARGET)
    return False


def test_eight_heads_are_kept_and_the_oldest_leaves_first():
    heads = Heads()
    for number in range(9):
        assert not heard(heads, named(number))
    assert [heads.find(named(number)) is not None for number in range(9)] == [False] + [True] * 8


def test_long_ones_are_fewer():
    heads = Heads()
    said = [post(before=(b"Mcp-Name: %d" % number, b"Authorization: Bearer " + b"a" * 1900)) for number in range(5)]
    for data in said:
        heard(heads, data)
    assert [heads.find(data) is not None for data in said] == [False, True, True, True, True]


def test_one_that_is_kept_is_not_kept_twice():
    """It has to be read although it is known, when it comes while another one is answered."""
    heads = Heads()
    for _ in range(30):
        heads.learn(named(0), lines_of(named(0)), TARGET)
    assert len(heads._kept) == 1
    assert not heard(heads, named(1)) and heard(heads, named(1)) and heard(heads, named(0))


def test_who_never_says_the_same_is_not_listened_to_any_more():
    heads = Heads()
    for number in range(20):
        assert not heard(heads, named(number))
    assert heads.find(named(15)) is not None and heads.find(named(19)) is None, "sixteen were learnt"


def test_heads_that_are_of_use_pay_for_others():
    heads = Heads()
    for number in range(20):
        heard(heads, named(number))
    for _ in range(4):
        assert heard(heads, named(15))
    assert not heard(heads, named(99)) and heard(heads, named(99))


@pytest.mark.parametrize(("tools", "known"), [(2, 0.98), (8, 0.97), (9, 0.7), (20, 0.3)])
def test_a_client_with_more_to_say_than_is_kept_finds_some_of_it(tools, known):
    """It calls one tool after the other, again and again: what is kept is not driven out by each that is not."""
    heads = Heads()
    found = [heard(heads, named(number % tools)) for number in range(1000)]
    assert sum(found) / len(found) >= known


def test_a_client_that_begins_a_new_session_is_heard_anew():
    heads = Heads()
    for session in (b"a", b"b"):
        said = [post(before=(b"Mcp-Session-Id: " + session, b"Mcp-Name: %d" % number)) for number in range(8)]
        for data in said * 3:
            heard(heads, data)
        assert all(heard(heads, data) for data in said)


# --- with the parser beside it ---


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__({"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 80)})
        self.written, self.closed = b"", False

    def write(self, data):
        self.written += bytes(data)

    def writelines(self, list_of_data):
        self.write(b"".join(list_of_data))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close

    def pause_reading(self):
        pass

    resume_reading = pause_reading

    def get_write_buffer_size(self):
        return 0


class Recorder:
    """Answers each request, and remembers what it was."""

    def __init__(self):
        self.seen = []

    async def __call__(self, scope, receive, send):
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        self.seen.append(({**scope, "headers": list(scope["headers"])}, body))
        scope["headers"].clear()  # whoever takes something away takes it from himself alone
        scope["path"] = "elsewhere"
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def connected(app, kind):
    config = uvicorn.Config(app, http=kind, lifespan="off", ws="none", log_config=None, access_log=False)
    config.load()
    connection, transport = kind(config, ServerState(), {}), Transport()
    connection.connection_made(transport)
    return connection, transport


async def spoken(pieces, protocol=None):
    """What an application saw, and what was written and closed, when these pieces came."""
    app = Recorder()

    connection, transport = connected(app, protocol or bounded_by(1 << 20, 100))
    for piece in pieces:
        if not transport.closed:
            connection.data_received(piece)
        for _ in range(4):
            await asyncio.sleep(0)
    found = list(app.seen), transport.written, transport.closed, connection.heads
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return found


def requests(random):
    """Much the same again and again, and now and then something else, or in other pieces."""
    names = [b"add", b"mul"]
    while True:
        body = bytes(random.choices(b"abc\r\n", k=random.choice([1, 2, 9, 10, 300])))
        plain = post(body, before=(b"Host: localhost", b"Mcp-Name: " + random.choice(names)))
        yield random.choices(
            [
                [plain],
                [plain[: (cut := random.randrange(1, len(plain)))], plain[cut:]],
                [plain + plain],
                [plain, b"\r\n"],
                [b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" + plain],
                [plain.replace(b"HTTP/1.1", b"HTTP/1.0")],
                [plain.replace(b"Accept: */*", b"Connection: close")],
                [plain.replace(b"Accept: */*", b"Expect: 100-continue")],
                [plain.replace(b"Accept: */*", b"Connection: Upgrade\r\nUpgrade: h2c")],
                [plain.replace(b"POST /mcp", b"POST http://other/mcp?a=1")],
                [plain.replace(b"POST", b"PUT")],
                [
                    post(b"5\r\nhello\r\n0\r\n\r\n", behind=(b"Transfer-Encoding: chunked",)).replace(
                        b"Content-L", b"X-L"
                    )
                ],
                [plain[: random.randrange(1, len(plain))]],
                [plain.replace(b"Content-Length: ", b"Content-Length: 0")],
            ],
            [40, 4, 2, 1, 1, 0.2, 0.2, 1, 1, 1, 1, 1, 0.2, 1],
        )[0]


class Reading(bounded_by(1 << 20, 100)):
    """The same connection, which remembers nothing."""

    def learn(self, beginning, target):
        pass


@pytest.mark.parametrize("seed", range(60))
async def test_a_connection_that_remembers_heads_hears_what_one_that_reads_them_hears(seed):
    random = Random(seed)
    talk = requests(random)
    pieces = [piece for _ in range(40) for piece in next(talk)]
    remembering, reading = await spoken(pieces, bounded_by(1 << 20, 100)), await spoken(pieces, Reading)
    assert remembering[:3] == reading[:3]
    assert reading[3] is None


async def test_most_requests_of_a_connection_are_not_read_by_the_parser():
    found = []

    class Counting(Heads):
        def find(self, data):
            found.append(super().find(data))
            return found[-1]

    class Counted(bounded_by(1 << 20, 100)):
        def learn(self, beginning, target):
            self.heads = self.heads or Counting()
            super().learn(beginning, target)

    bodies = [b"x" * size for size in (5, 7, 120, 3, 5)]
    seen, written, closed, _ = await spoken([post(body) for body in bodies], Counted)
    assert [body for _, body in seen] == bodies and not closed
    assert [scope["path"] for scope, _ in seen] == ["/mcp"] * 5, "what an application changes is its own"
    assert len(found) == 3 and None not in found, "the first two are read: a single one is not worth remembering"
    assert written.count(b"HTTP/1.1 200 OK") == 5


async def test_what_comes_behind_a_broken_request_is_never_taken_for_one():
    bad = b"NOT HTTP AT ALL\r\n\r\n"
    seen, written, closed, _ = await spoken([post(b"1"), post(b"2"), post(b"3"), bad, post(b"4")])
    assert [body for _, body in seen] == [b"1", b"2", b"3"] and closed and b"400" in written


async def test_a_request_whose_answer_is_still_under_way_is_not_overtaken():
    """It waits its turn, as the parser's way has it."""
    gate = asyncio.Event()
    order = []

    async def app(scope, receive, send):
        body = (await receive())["body"]
        order.append(body)
        if body == b"3":
            await gate.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
        await send({"type": "http.response.body", "body": body})

    connection, transport = connected(app, bounded_by(1 << 20, 100))
    for body in (b"1", b"2", b"3", b"4"):
        connection.data_received(post(body))
        for _ in range(4):
            await asyncio.sleep(0)
    assert order == [b"1", b"2", b"3"]
    gate.set()
    for _ in range(6):
        await asyncio.sleep(0)
    assert order == [b"1", b"2", b"3", b"4"]
    assert [line[-1:] for line in transport.written.split(b"HTTP/1.1")[1:]] == [b"1", b"2", b"3", b"4"]
    connection.connection_lost(None)
    await asyncio.sleep(0)


async def test_what_was_counted_of_chunks_is_forgotten_with_the_next_request():
    """Else line ends between two requests would be taken for a chunk that is too long."""
    chunked = post(b"5\r\nhello\r\n0\r\n\r\n", behind=(b"Transfer-Encoding: chunked",)).replace(b"Content-L", b"X-L")
    pieces = [post(b"1"), post(b"2"), chunked, post(b"3"), *[b"\r\n" * 300_000] * 4, post(b"4")]
    small = {kind: type("Small", (kind,), {"body_bytes": 1000}) for kind in (bounded_by(1000, 100), Reading)}
    remembering, reading = [await spoken(pieces, kind) for kind in small.values()]
    assert remembering[:3] == reading[:3] and [body for _, body in reading[0]] == [b"1", b"2", b"hello", b"3", b"4"]


def test_a_connection_that_asks_once_keeps_nothing():
    assert Bounded.heads is None
