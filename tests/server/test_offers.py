"""server/offers.py: what one server offers, and that a change of it is told."""

import pytest

from interlock.server.offers import Offers
from interlock.server.prompts import RegisteredPrompt
from interlock.server.threads import Threads
from interlock.server.tools import RegisteredTool
from interlock.wire.errors import LocalError

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
    from interlock.server.context import Context

    def speaks(ctx: Context) -> str:
        return ""

    found = offers()
    found.add("prompts", "quiet", prompt(name="quiet"))
    assert not found.kinds()["logging"]
    found.add("prompts", "p", prompt(speaks))
    assert found.kinds()["logging"]
