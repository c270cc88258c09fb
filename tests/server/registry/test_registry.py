"""server/registry/registry.py: what one server offers, and that a change of it is told."""

import pytest

from interlock import Server
from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.prompts import RegisteredPrompt
from interlock.server.registry.registry import Offers
from interlock.server.tools.tool import RegisteredTool
from interlock.testing import MemoryClient
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Principal

THREADS = Threads(1)


class Told:
    """Stands where the change notices go."""

    def __init__(self, offers):
        self.kinds = []
        offers.changes.list_changed = lambda kind, *rest: self.kinds.append(kind)


def offers():
    return Offers(THREADS, None)


def tool(name="t"):
    return RegisteredTool(lambda: None, threads=THREADS, name=name)


def prompt(function=lambda: "", name="p"):
    return RegisteredPrompt(function, threads=THREADS, name=name)


def test_what_is_added_is_found_and_told_once():
    found = offers()
    told = Told(found)
    found.add("tools", "t", tool())
    found.add("prompts", "p", prompt())
    found.add("resources", "a:b", found.resources.make("a:b", lambda: ""))
    found.add("resources", "a:{b}", found.resources.make("a:{b}", lambda b: ""))
    assert (found.tools.get("t").name, found.prompts.get("p").noun.name) == ("t", "p")
    assert "a:b" in found.resources.fixed and "a:{b}" in found.resources.templates
    assert told.kinds == ["tools", "prompts", "resources", "resources"]


@pytest.mark.parametrize(
    ("kind", "name", "word"), [("tools", "t", "tool"), ("prompts", "p", "prompt"), ("resources", "a:b", "resource")]
)
def test_a_name_is_taken_once_and_a_refusal_tells_nobody(kind, name, word):
    found = offers()
    item = {"tools": tool(), "prompts": prompt(), "resources": found.resources.make("a:b", lambda: "")}[kind]
    found.add(kind, name, item)
    told = Told(found)
    with pytest.raises(LocalError, match=f"there is a {word} '{name}' already"):
        found.add(kind, name, item)
    found.remove(kind, name)
    with pytest.raises(LocalError, match=f"there is no {word} '{name}'"):
        found.remove(kind, name)
    assert told.kinds == [kind]


def test_the_kinds_are_what_there_is_or_was():
    found = offers()
    assert not any(found.kinds().values())
    found.add("tools", "t", tool())
    found.remove("tools", "t")
    assert [kind for kind, offered in found.kinds().items() if offered] == ["tools"]


def test_what_takes_a_context_may_log():
    def speaks(ctx: Context) -> str:
        return ""

    found = offers()
    found.add("prompts", "quiet", prompt(name="quiet"))
    assert not found.kinds()["logging"]
    found.add("prompts", "p", prompt(speaks))
    assert found.kinds()["logging"]


# --- who sees what ---

ADA, BOB = Principal("i", "ada"), Principal("i", "bob")


def limited():
    """Ada sees everything; Bob no name with an x."""
    found = offers()
    found.show_by(lambda principal, item: principal is ADA or "x" not in item.name)
    return found


def test_until_somebody_decides_everything_is_for_everybody():
    found = offers()
    found.add("tools", "x", tool("x"))
    assert not found.limited and not found.hides(found.tools.get("x"), BOB) and found.admits(tool("x")) is None


def test_what_is_hidden_is_hidden_from_some():
    found = limited()
    found.add("prompts", "x", prompt(name="x"))
    item = found.prompts.get("x")
    assert found.limited and found.hides(item, BOB) and not found.hides(item, ADA)
    assert found.referred("x", None, ADA) is item is found.referred("x", None)
    assert found.referred("x", None, BOB) is None


def test_a_change_is_told_to_those_who_see_the_item():
    found, told = limited(), []
    found.changes.list_changed = lambda kind, admits=None: told.append((kind, admits(ADA), admits(BOB)))
    found.add("tools", "x", tool("x"))
    found.add("tools", "y", tool("y"))
    found.remove("tools", "x")
    assert told == [("tools", True, False), ("tools", True, True), ("tools", True, False)]


def test_an_update_is_told_to_those_who_may_read():
    found, told = limited(), []
    found.changes.resource_updated = lambda uri, admits=None: told.append((uri, admits(ADA), admits(BOB)))
    found.add("resources", "a:x", found.resources.make("a:x", lambda: ""))
    found.add("resources", "t:{b}", found.resources.make("t:{b}", lambda b: ""))
    found.add("resources", "tx:{b}", found.resources.make("tx:{b}", lambda b: ""))
    for uri in ("a:x", "t:1", "tx:1", "a:none"):
        found.resource_changed(uri)
    assert told == [("a:x", True, False), ("t:1", True, True), ("tx:1", True, False), ("a:none", False, False)]


def test_there_is_one_answer_to_who_sees_what():
    with pytest.raises(LocalError, match="already"):
        limited().show_by(lambda principal, item: True)


def test_when_it_changes_everybody_looks_again():
    found = limited()
    told = Told(found)
    found.visibility_changed()
    assert told.kinds == ["tools", "prompts", "resources"]


def test_what_was_removed_takes_its_completions_along():
    def city(name: str = "") -> str:
        return ""

    found = offers()
    for _ in range(2):
        found.add("prompts", "p", prompt(city))
        found.completions.register("p", None, "name")(lambda typed: [])
        found.remove("prompts", "p")
    assert found.completions.offered  # a declared capability is kept (CAP-02)


async def test_a_server_that_hides_already_when_it_is_mounted_hides_there_too():
    inner, outer = Server("inner"), Server("outer")

    @inner.tool
    async def secret() -> str:
        return "s"

    @inner.tool
    async def open() -> str:
        return "o"

    @inner.visible
    def visible(principal, item):
        return item.name != "secret"

    outer.mount("in", inner)
    async with MemoryClient(outer) as client:
        assert [tool.name for tool in await client.list_tools()] == ["in_open"]
