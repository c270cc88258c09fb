"""client/output_validation.py: schemas and values of a server are data, and cost what we allow."""

import subprocess
import sys

import pytest

from interlock.client import output_validation
from interlock.client.output_validation import Outputs
from interlock.wire.types.tools import Tool

POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def outputs(schema, name="t"):
    found = Outputs()
    found.learn([Tool(name=name, input_schema={}, output_schema=schema), Tool(name="plain", input_schema={})])
    return found


def test_what_fits_and_what_does_not():
    found = outputs(POINT)
    assert found.mismatch("t", True, {"x": 1}) is None
    assert "/x" in found.mismatch("t", True, {"x": "1"})
    assert "x" in found.mismatch("t", True, {})
    assert "no structured content" in found.mismatch("t", False, None)
    assert found.mismatch("plain", False, None) is None
    assert found.mismatch("unheard of", True, 7) is None


def test_a_null_that_was_given_is_a_value():
    found = outputs({"type": "null"})
    assert found.mismatch("t", True, None) is None
    assert found.mismatch("t", False, None) is not None


def test_the_newest_list_counts():
    found = outputs(POINT)
    found.learn([Tool(name="t", input_schema={}, output_schema={"type": "string"})])
    assert found.mismatch("t", True, "x") is None
    found.forget()
    assert not found.known
    assert found.mismatch("t", True, 7) is None


def test_a_check_is_built_once(monkeypatch):
    from interlock.wire.json import schema as json_schema

    built = []
    real = json_schema.check_and_effort
    monkeypatch.setattr(json_schema, "check_and_effort", lambda *given: built.append(1) or real(*given))
    found = outputs(POINT)
    for _ in range(3):
        found.mismatch("t", True, {"x": 1})
    assert built == [1]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$ref": "https://example.com/schema"}, "address"),
        ({"$ref": "file:///etc/passwd"}, "address"),
        ({"$schema": "https://example.com/dialect"}, "not supported"),
        ({"type": "hologram"}, "no usable JSON Schema"),
        ({"pattern": "("}, "no usable JSON Schema"),
        ({"enum": list(range(10_000))}, "more than 3000 parts"),
        ({"anyOf": [{"allOf": [{"$ref": "#/$defs/a"}] * 400}] * 400, "$defs": {"a": {}}}, "parts"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_schema_that_cannot_be_used_lets_nothing_pass(schema, told):
    found = outputs(schema)
    wrong = found.mismatch("t", True, {})
    assert wrong.startswith("not checked") and told in wrong


def nested(levels):
    """A schema that doubles its work with every level."""
    defs = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/0", "$defs": {**defs, str(levels): {}}}


def test_a_schema_that_explodes_is_not_used():
    assert "steps" in outputs(nested(30)).mismatch("t", True, {})


def test_a_value_that_would_take_too_long_is_not_checked(monkeypatch):
    monkeypatch.setattr(output_validation, "MOST_WORK", 1000)
    found = outputs({"type": "array", "items": {"type": "integer"}})
    assert found.mismatch("t", True, [1] * 10) is None
    assert "not checked" in found.mismatch("t", True, [1] * 2000)


def test_choices_make_every_part_dearer(monkeypatch):
    monkeypatch.setattr(output_validation, "MOST_WORK", 10_000)
    found = outputs({"items": {"enum": list(range(900))}})
    assert found.mismatch("t", True, [1] * 5) is None
    assert "not checked" in found.mismatch("t", True, [1] * 50)


def test_a_pattern_that_goes_back_and_back_ends():
    # A reference to what was matched is what no engine does in linear time.
    found = outputs({"type": "string", "pattern": r"^(a|a|aa)*\1b$"})
    assert found.mismatch("t", True, "a" * 5000) is not None


@pytest.mark.parametrize("schema", [{"pattern": "(?=x)x"}, {"patternProperties": {"(x)\\1": {}}}], ids=str)
def test_such_a_pattern_makes_every_part_dearer(schema, monkeypatch):
    monkeypatch.setattr(output_validation, "MOST_WORK", 10_000)
    assert "not checked" in outputs({"items": schema}).mismatch("t", True, ["x"] * 50)
    assert outputs({"items": {"pattern": "^(?:x)+$"}}).mismatch("t", True, ["x"] * 50) is None


def test_a_report_is_harmless_and_short():
    found = outputs({"type": "integer"})
    wrong = found.mismatch("t", True, "\x1b[2J" + "x" * 100_000)
    assert "\x1b" not in wrong and len(wrong) < 1100


def test_checks_are_bounded(monkeypatch):
    monkeypatch.setattr(output_validation, "MOST_CHECKS", 3)
    found = Outputs()
    found.learn([Tool(name=str(n), input_schema={}, output_schema={"const": n}) for n in range(10)])
    for _ in range(2):
        assert all(found.mismatch(str(n), True, n) is None for n in range(10))
    assert len(found._checks) == 3


def test_the_library_is_loaded_with_the_first_check():
    program = """
import asyncio, sys
from interlock import Client, Server
server = Server("s")
@server.tool
async def add(a: int) -> str: return str(a)
@server.tool
async def sum(a: int) -> int: return a
async def main():
    async with Client(server) as client:
        await client.list_tools()
        await client.call_tool("add", {"a": 1})
        print("jsonschema_rs" in sys.modules)
        assert (await client.call_tool("sum", {"a": 1})).mismatch is None
        print("jsonschema_rs" in sys.modules)
asyncio.run(main())
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split() == ["False", "True"]
