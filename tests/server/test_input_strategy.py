"""server/input_strategy.py: how the questions of one server are asked."""

import time
from types import SimpleNamespace

import pytest

from interlock.server.input_strategy import asker_of
from interlock.state.sealing import Seal
from interlock.wire.types.tools import CallToolParams

TOOLS = {
    "waits": SimpleNamespace(park=True, single_use=False),
    "once": SimpleNamespace(park=False, single_use=True),
    "mounted": object(),
}
RULES = asker_of(TOOLS.get, Seal([b"k" * 32]), seconds=7.0, audience="notes").rules


@pytest.mark.parametrize("name", [*TOOLS, "unknown"])
def test_a_tool_says_how_it_asks(name):
    params = CallToolParams(name=name)
    assert RULES.parks("tools/call", params) is (name == "waits")
    assert RULES.single_use("tools/call", params) is (name == "once")


def test_a_prompt_of_that_name_is_no_tool():
    params = CallToolParams(name="waits")
    assert not RULES.parks("prompts/get", params)
    assert not RULES.single_use("resources/read", None)


def test_a_tool_that_comes_later_is_heard():
    tools = {}
    rules = asker_of(tools.get, Seal([b"k" * 32]), seconds=7.0, audience="notes").rules
    assert not rules.parks("tools/call", CallToolParams(name="new"))
    tools["new"] = TOOLS["waits"]
    assert rules.parks("tools/call", CallToolParams(name="new"))


def test_states_are_of_one_server_and_of_a_time_that_replicas_agree_on():
    assert (RULES.seconds, RULES.audience, RULES.clock) == (7.0, "notes", time.time)
