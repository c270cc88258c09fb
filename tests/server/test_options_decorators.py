"""server/options.py: bare or called first, the function is added and stays what it is."""

import pytest

from interlock import Server
from interlock.server.options import adding, bare_or_not
from interlock.wire.errors import LocalError


def greet(name: str) -> str:
    return name


def test_the_function_is_added_and_stays_what_it_is():
    added = []
    assert adding(added.append)(greet) is greet
    assert added == [greet]


def test_bare_it_adds_at_once():
    added = []
    assert bare_or_not("tool", greet, added.append) is greet
    assert added == [greet]


def test_called_first_it_adds_when_it_stands_before_a_function():
    added = []
    decorator = bare_or_not("tool", None, added.append)
    assert not added
    assert decorator(greet) is greet and added == [greet]


def test_what_cannot_be_added_is_not_given_back():
    def refuse(function):
        raise LocalError("taken")

    with pytest.raises(LocalError, match="taken"):
        bare_or_not("tool", greet, refuse)


def test_a_name_is_said_by_name():
    server = Server("x")
    with pytest.raises(LocalError, match=r"@server.tool\('greet'\).*name="):
        server.tool("greet")
    with pytest.raises(LocalError, match=r"@server.prompt\('greet'\).*name="):
        server.prompt("greet")
