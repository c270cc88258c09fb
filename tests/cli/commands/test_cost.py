"""cli/commands/cost.py: what the tools of a server cost a model."""

import json

import pytest

from interlock import Client, Server
from interlock.cli.commands import cost
from interlock.cli.commands.cost import cost_of, cost_text
from interlock.cli.errors import Failure
from interlock.cli.main import main
from interlock.host.catalogue.token_estimate import of_tool, tokens

FILE = """\
from interlock import Server

server = Server("two", instructions="Be brief.")


@server.tool
def cheap() -> str:
    return ""


@server.tool
def dear(first: str, second: int = 1) -> str:
    \"\"\"A tool that says at some length what it is good for, and when not to use it.\"\"\"
    return ""
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("cost") / "server.py"
    path.write_text(FILE)
    return str(path)


async def test_each_tool_and_the_instructions_are_counted_as_a_host_would():
    server = Server("s", instructions="Be brief.")
    server.add_tool(lambda: "", name="one", description="One.")
    server.add_tool(lambda a: "", name="two", description="Two, with an argument that costs more.")
    async with Client(server) as client:
        found = await cost_of(client)
        tools = {tool.name: of_tool(tool.name, tool) for tool in await client.list_tools()}
    assert {each["name"]: each["tokens"] for each in found["tools"]} == tools
    assert [each["name"] for each in found["tools"]] == ["two", "one"], "the dearest first"
    assert found["instructions"] == tokens("Be brief.")
    assert found["total"] == sum(tools.values()) + found["instructions"]


async def test_a_server_without_tools_costs_nothing():
    server = Server("s")
    server.add_prompt(lambda: "", name="p")
    async with Client(server) as client:
        found = await cost_of(client)
    assert (found["tools"], found["total"]) == ([], 0)
    assert cost_text(found).splitlines()[0].startswith("s · ") and cost_text(found).endswith(" 0")


def test_names_of_a_server_are_data():
    found = {"server": "x\x1b[2J", "revision": "r", "tools": [{"name": "a\x1b", "tokens": 3}], "total": 3}
    shown = cost_text({**found, "instructions": 0})
    assert "\x1b" not in shown and "100%" in shown


def test_the_table_and_the_budget(file, capsys):
    main(["cost", file])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("two · ") and lines[0].endswith("2 tools, in tokens (estimated)")
    assert [line.split()[0] for line in lines[2:]] == ["dear", "cheap", "(instructions)", "in"]
    with pytest.raises(SystemExit) as caught:
        main(["cost", file, "--most", "10", "--json"])
    told = capsys.readouterr()
    assert caught.value.code == 1 and "are more than 10" in told.err
    found = json.loads(told.out)
    assert found["server"] == "two" and found["total"] > 10
    assert int(lines[-1].split()[-1]) == found["total"]


@pytest.mark.parametrize("words", [["a", "b"], ["a", "--", "b"], []])
def test_wrong_words_are_code_2(words):
    with pytest.raises(Failure) as caught:
        cost.command(words)
    assert caught.value.code == 2
