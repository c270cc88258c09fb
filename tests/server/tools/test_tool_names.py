"""server/tools/tool.py: what a tool may be called."""

import pytest

from interlock.server.tools.tool import check_tool_name
from interlock.wire.errors import LocalError


@pytest.mark.parametrize("name", ["a", "a.b-c_D9", "x" * 128])
def test_a_name(name):
    check_tool_name(name)


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "ä", "a/b"])
def test_no_name(name):
    with pytest.raises(LocalError, match="no tool name"):
        check_tool_name(name)


def test_a_function_without_a_name_needs_one():
    with pytest.raises(LocalError, match="say name="):
        check_tool_name("<lambda>")
