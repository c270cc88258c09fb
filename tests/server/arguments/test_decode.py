"""server/arguments/decode.py: arguments that fit are decoded once; nothing else is loaded for them."""

import subprocess
import sys

import pytest
from msgspec import Raw, ValidationError

from interlock.server.arguments.decode import fitting
from interlock.server.arguments.errors import Unmendable
from interlock.server.context import Context
from interlock.server.schema.signature import read_signature


def arguments_of(function):
    return fitting(read_signature(function, Context))


def add(a: int, b: int = 1) -> int:
    return a + b


def test_what_fits_becomes_keyword_arguments():
    assert arguments_of(add)(Raw(b'{"a": 2}')) == {"a": 2, "b": 1}


def test_what_does_not_fit_is_mended_or_told():
    arguments = arguments_of(add)
    assert arguments(Raw(b'{"a": "2"}')) == {"a": 2, "b": 1}
    for _ in range(2):  # what mends is made once
        with pytest.raises(Unmendable) as caught:
            arguments(Raw(b'{"a": "two", "b": {}}'))
        assert [line.partition(":")[0] for line in caught.value.lines] == ["a", "b"]


def test_they_come_in_their_order_for_a_function_that_is_called_directly():
    arguments = fitting(read_signature(add, Context), in_order=True)
    assert arguments(Raw(b'{"b": 3, "a": 2}')) == (2, 3)
    assert arguments(Raw(b'{"a": 2}')) == (2, 1)
    assert arguments(Raw(b'{"b": 3, "a": "2"}')) == (2, 3)  # mended


def test_what_is_no_object_is_refused():
    with pytest.raises(ValidationError):
        arguments_of(add)(Raw(b"[1]"))


def test_what_mends_is_loaded_with_the_first_mistake():
    program = """
import asyncio, sys
from interlock import Client, Server
server = Server("s")
@server.tool
async def add(a: int) -> str: return str(a)
rare = "server.arguments.repair server.arguments.coercion server.arguments.describe"
rare += " wire.json.schema wire.json.schema_cost"
rare += " server.arguments.explicit_schema server.resources.template server.resources.uri_template"
loaded = lambda: [name for name in rare.split() if f"interlock.{name}" in sys.modules]
async def main():
    async with Client(server) as client:
        await client.call_tool("add", {"a": 1})
        print(loaded())
        await client.call_tool("add", {"a": "1"})
        print("server.arguments.repair" in loaded())
asyncio.run(main())
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.splitlines() == ["[]", "True"]
