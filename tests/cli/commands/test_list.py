"""cli/commands/list.py: what a server offers, for people and for programs."""

import json

import pytest

from interlock import Server
from support.children import command_of, write_server
from support.command_line import aimed, code_of, demo


@pytest.fixture(autouse=True)
def at_demo(monkeypatch):
    aimed(monkeypatch, demo(instructions="Be \x1b[1mkind.\nAlways."))


def test_everything_is_listed_with_the_words_to_use_it(capsys):
    assert code_of("list", "x") == 0
    shown = capsys.readouterr().out
    assert shown.startswith('"demo\\x1b[31m" 1.0 · ') and "  Be \\x1b[1mkind.\n  Always.\n" in shown
    assert "  add(a: integer, b: integer = 1)" in shown and "Adds two numbers." in shown
    assert "  review(language, version?)" in shown and "templates: 1\n  note://{day}" in shown
    assert "\x1b" not in shown


def test_some_lists_may_be_chosen(capsys):
    assert code_of("list", "x", "prompts", "templates") == 0
    shown = capsys.readouterr().out
    assert "prompts: 1" in shown and "templates: 1" in shown and "tools" not in shown
    assert "Always." not in shown, "who wants some lists wants these"


def test_behind_the_dashes_is_a_command_and_no_list(capsys):
    assert code_of("list", "prompts", "--", "tools") == 0
    assert "tools" not in capsys.readouterr().out


def test_json_is_one_document_and_nothing_else(capsys):
    assert code_of("list", "x", "--json") == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert told.err == "" and "\x1b" not in told.out
    assert found["server"]["name"] == "demo\x1b[31m" and found["instructions"].endswith("Always.")
    assert [tool["name"] for tool in found["tools"]] == ["add", "say", "fail", "walk", "borrow"]
    assert found["tools"][0]["inputSchema"]["required"] == ["a"]
    assert {"resources", "resourceTemplates", "prompts", "capabilities", "revision"} <= found.keys()


def test_what_a_server_does_not_offer_is_an_empty_list(monkeypatch, capsys):
    aimed(monkeypatch, Server("bare"))
    assert code_of("list", "x") == 0
    assert "tools: none" in capsys.readouterr().out


def test_a_list_that_does_not_exist_is_a_usage_error(capsys):
    assert code_of("list", "x", "toools") == 2
    assert "the lists are tools, resources, templates, prompts" in capsys.readouterr().err


HALF = """
def mine(request):
    method = request.get("method")
    if method == "initialize":
        offered = {"tools": {}, "resources": {}, "prompts": {}}
        version = request["params"]["protocolVersion"]
        about = {"name": "half", "version": "1"}
        return result(request, {"protocolVersion": version, "capabilities": offered, "serverInfo": about})
    if method in BROKEN:
        return error(request, -32603, "the index is \\x1b[2J gone")
    lists = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
    lists["resources/templates/list"] = "resourceTemplates"
    if method == "tools/list":
        return result(request, {"tools": [{"name": "works", "inputSchema": {"type": "object"}}]})
    if method in lists:
        return result(request, {lists[method]: []})
    answer(request)
serve(mine)
"""


@pytest.fixture
def half(monkeypatch, tmp_path):
    def put(*broken):
        aimed(monkeypatch, command_of(write_server(tmp_path, f"BROKEN = {broken!r}\n{HALF}")))

    return put


def test_a_list_that_fails_is_named_and_the_others_are_shown(half, capsys):
    half("resources/list")
    assert code_of("list", "x") == 4
    shown = capsys.readouterr().out
    assert "tools: 1\n  works()" in shown and "prompts: none" in shown and "templates: none" in shown
    assert "resources: could not be listed: " in shown and "the index is \\x1b[2J gone" in shown and "\x1b" not in shown


def test_a_list_that_fails_is_named_in_json(half, capsys):
    half("resources/list", "prompts/list")
    assert code_of("list", "x", "--json") == 4
    found = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in found["tools"]] == ["works"] and found["resourceTemplates"] == []
    assert found["errors"].keys() == {"resources", "prompts"} and not {"resources", "prompts"} & found.keys()


def test_where_everything_that_was_asked_for_fails_that_is_the_failure(half, capsys):
    half("resources/list")
    assert code_of("list", "x", "resources") == 4
    told = capsys.readouterr()
    assert told.out == "" and "the index is" in told.err
