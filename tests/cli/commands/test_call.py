"""cli/commands/call.py: a tool, its arguments, and what comes of it."""

import json

import pytest

from interlock import Server
from interlock.cli.commands.call import call, result_text
from interlock.cli.terminal.progress import Progress
from interlock.client.results import CallResult
from interlock.wire.types.content import TextContent
from interlock.wire.types.tools import Tool
from support.command_line import aimed, code_of, demo


@pytest.fixture(autouse=True)
def at_demo(monkeypatch):
    aimed(monkeypatch, demo())


def test_a_tool_is_run_with_typed_arguments(capsys):
    assert code_of("call", "x", "add", "a=40", "b=2") == 0
    assert capsys.readouterr() == ("42\n", "")


def test_the_tool_comes_first_where_a_command_is_the_target(capsys):
    assert code_of("call", "add", "a=1", "--", "whatever", "--json") == 0
    assert capsys.readouterr().out == "2\n"


def test_what_the_tool_says_moves_no_cursor(capsys):
    assert code_of("call", "x", "say", "text=hi") == 0
    assert capsys.readouterr().out == "\\x1b[2Jsaid hi\n"


def test_a_tool_that_failed_is_code_1_and_its_words_the_output(capsys):
    assert code_of("call", "x", "fail") == 1
    assert "not today" in capsys.readouterr().out


def test_a_bug_of_the_server_is_told_with_where_its_traceback_is(capsys, monkeypatch):
    broken = Server("broken")
    broken.add_tool(lambda: 1 / 0, name="divide")
    aimed(monkeypatch, broken)
    assert code_of("call", "x", "divide") == 1
    out, err = capsys.readouterr()
    assert "(reference " in out and "--debug" in err and "ZeroDivision" not in out


def test_json_is_the_result_as_the_specification_words_it(capsys):
    assert code_of("call", "x", "add", "a=1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["content"] == [{"type": "text", "text": "2"}] and found["isError"] is False
    assert "structuredContent" in found
    assert code_of("call", "x", "fail", "--json") == 1
    assert json.loads(capsys.readouterr().out)["isError"] is True


def test_progress_is_not_drawn_into_a_pipe(capsys):
    assert code_of("call", "x", "walk", "steps=3") == 0
    assert capsys.readouterr() == ("there\n", "")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["x"], 2, "this takes a TARGET and a TOOL"),
        (["--", "server"], 2, "this takes a TOOL"),
        (["x", "ad"], 4, "the server has no tool 'ad'\n  hint: did you mean add?"),
        (["x", "zzz"], 4, "interlock list shows the tools"),
        (["x", "add"], 2, "a must be given\n  hint: it takes: a: integer, b: integer = 1"),
        (["x", "add", "a=b"], 2, "a='b': this is no integer"),
        (["x", "add", "a:=null"], 1, ""),
    ],
)
def test_mistakes_are_said(words, code, told, capsys):
    assert code_of("call", *words) == code
    assert told in capsys.readouterr().err


def test_what_is_only_structured_is_shown_as_json():
    assert result_text(CallResult([], {"a": "\x1b"})) == '{\n  "a": "\\u001b"\n}'
    assert result_text(CallResult([])) == ""


async def test_a_result_that_breaks_its_own_schema_is_noted(capsys):
    class Lying:
        async def list_tools(self):
            return [Tool(name="lies", input_schema={})]

        async def call_tool(self, name, arguments, **options):
            return CallResult([TextContent(text="x")], mismatch="\x1b is no integer")

    assert await call(Lying(), Progress(), "lies", []) == 0
    told = capsys.readouterr()
    assert told.out == "x\n"
    assert told.err == "! what it gave does not fit the tool's own schema: \\x1b is no integer\n"
