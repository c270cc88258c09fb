"""client/targets.py: what a client can be pointed at."""

import functools
import pathlib
import sys

import pytest

from interlock.client.http_target import HttpTarget
from interlock.client.targets import target_of
from interlock.server.server import Server
from interlock.transport.http.client.link import HttpLink
from interlock.transport.http.client.probe import HttpProber
from interlock.transport.memory import MemoryChannel
from interlock.transport.stdio.child_process import ChildChannel, Command
from interlock.wire.errors import LocalError
from interlock.wire.limits import DEFAULT_LIMITS, Limits
from interlock.wire.messages import encode_call
from interlock.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from support.deferred import define, needs_deferred
from support.doubles import Channel, Receiver, turns

ENVELOPE = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}}


def target(given):
    return target_of(given, DEFAULT_LIMITS)


@pytest.mark.parametrize(
    "given", [[sys.executable, "x.py"], (sys.executable, "x.py"), Command.of([sys.executable, "x.py"])]
)
async def test_a_command_is_a_child(given):
    found = target(given)
    assert isinstance(found.make(), ChildChannel)
    assert found.make() is not found.make()
    assert found.pings
    assert sys.executable in found.name


def test_the_same_command_is_the_same_target():
    assert target(["a", "b"]).key == target(("a", "b")).key
    assert target(["a", "b"]).key != target(["a", "c"]).key
    assert target(Command.of(["a"], cwd="/x")).key != target(["a"]).key


@pytest.mark.parametrize("given", ["python server.py", "", 7, None, object()])
def test_what_is_no_target_is_a_mistake_of_the_caller(given):
    with pytest.raises(LocalError):
        target(given)


@pytest.mark.parametrize("given", ["server.py", pathlib.Path("server.py")])
def test_a_python_file_is_told_how_it_is_started(given):
    with pytest.raises(LocalError, match=r"\[sys.executable, '-m', 'interlock', 'run', 'server.py'\]"):
        target(given)


@pytest.mark.parametrize("given", [b"python", ["python", 7], [None]])
def test_a_command_is_made_of_strings(given):
    with pytest.raises(LocalError):
        target(given).make()


async def answered(found):
    channel, heard = found.make(), Receiver()
    assert isinstance(channel, MemoryChannel)
    await channel.open(heard)
    channel.send(encode_call(1, "tools/list", {"_meta": ENVELOPE}))
    await turns()
    await channel.close()
    await turns()
    return heard.messages


async def echo(exchange):
    return {"tools": []}


class Handler:
    async def __call__(self, exchange):
        return {"tools": []}

    async def method(self, exchange, option=None):
        return {"tools": []}


async def bound(option, exchange):
    return {"tools": []}


@pytest.mark.parametrize(
    "given",
    [Server("s"), echo, Handler(), Handler().method, functools.partial(bound, 1), lambda exchange: echo(exchange)],
)
async def test_a_server_or_a_handler_is_served_in_memory(given):
    if isinstance(given, Server):
        given.tool(name="t")(lambda: None)
    found = target(given)
    assert not found.pings  # both ends live and die together
    [message] = await answered(found)
    assert b'"result"' in message


async def test_a_channel_is_used_once():
    channel = Channel()
    found = target(channel)
    assert found.make() is channel
    with pytest.raises(LocalError, match="used already"):
        found.make()


async def test_a_function_that_makes_channels_is_called_each_time():
    made = []

    def make():
        made.append(Channel())
        return made[-1]

    found = target(make)
    assert found.make() is made[0] and found.make() is made[1]


async def test_the_limits_go_with_the_channel():
    found = target_of(echo, Limits(id_bytes=1))
    channel, heard = found.make(), Receiver()
    await channel.open(heard)
    channel.send(encode_call("too long", "tools/list", {"_meta": ENVELOPE}))
    await turns()
    assert b"-32600" in heard.messages[0]
    await channel.close()
    await turns()


async def test_a_callable_that_cannot_be_looked_into_makes_channels():
    class Opaque:
        __signature__ = "nonsense"

        def __call__(self):
            return channel

    channel = Channel()
    assert target(Opaque()).make() is channel


# --- URLs ---


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/mcp", "https://example.com/mcp?x=1", "HTTPS://example.com/"])
async def test_a_url_is_an_endpoint(url):
    found = target_of(url, DEFAULT_LIMITS, {"X-Key": "k"})
    assert isinstance(found, HttpTarget)
    assert found.prober is HttpProber
    assert not found.pings
    assert found.endpoint.url == url
    assert found.endpoint.headers == {"X-Key": "k"}
    link = found.link(lambda method, params: None)
    assert isinstance(link, HttpLink)
    await link.close()


def test_a_verdict_holds_for_the_endpoint():
    assert target("http://x/a").key == target("http://X:80/a?c").key
    assert target("http://x/a").key != target("http://x/b").key
    assert target("http://x/a").key != target("https://x/a").key
    assert target("http://x/a").key != target("http://x:81/a").key


@pytest.mark.parametrize("url", ["http://user:pw@x/", "http://", "https://x/#a", "http://x y/"])
def test_a_url_is_parsed_strictly(url):
    with pytest.raises(LocalError):
        target(url)


def test_hosts_are_allowed_for_urls():
    found = target_of("http://10.0.0.1/mcp", DEFAULT_LIMITS, None, ["10.0.0.1"])
    assert isinstance(found, HttpTarget)
    assert found.endpoint.allowed == {"10.0.0.1"}
    with pytest.raises(LocalError, match=r"allowed_hosts=\['10\.0\.0\.1'\]"):
        target_of("http://10.0.0.1/mcp", DEFAULT_LIMITS)
    with pytest.raises(LocalError, match="allowed_hosts= belongs"):
        target_of(["server"], DEFAULT_LIMITS, None, ["x"])


def test_headers_belong_to_urls():
    with pytest.raises(LocalError, match="headers="):
        target_of(["python"], DEFAULT_LIMITS, {"X-Key": "k"})
    with pytest.raises(LocalError, match="belongs to the protocol"):
        target_of("http://x/", DEFAULT_LIMITS, {"Mcp-Name": "k"})


@needs_deferred
def test_the_annotations_of_a_function_may_be_for_type_checkers_alone():
    """One that makes channels is taken as it is, a handler gets channels to it."""
    maker, handler = define("def f() -> Channel: ..."), define("async def f(exchange: Exchange): ...")
    assert target(maker).make is maker and target(handler).make is not handler
