"""server/registry/visibility.py: the one question, and that no answer is a no."""

import logging

import pytest

from interlock.server.registry.visibility import Item, check_visible, is_visible
from interlock.wire.errors import LocalError
from interlock.wire.exchange import LOCAL
from interlock.wire.types.prompts import Prompt
from interlock.wire.types.resources import Resource, ResourceTemplate
from interlock.wire.types.tools import Tool
from support.deferred import define, needs_deferred

NOUNS = {
    ("tool", "t"): Tool(name="t", input_schema={}, meta={"com.example/role": "admin"}),
    ("prompt", "p"): Prompt(name="p"),
    ("resource", "a:b"): Resource(uri="a:b", name="n"),
    ("template", "a:{b}"): ResourceTemplate(uri_template="a:{b}", name="n"),
}


@pytest.mark.parametrize(("key", "noun"), NOUNS.items())
def test_every_kind_is_shown_by_its_name(key, noun):
    seen = []
    assert is_visible(lambda *asked: seen.append(asked) or True, LOCAL, noun)
    [(principal, item)] = seen
    assert principal is LOCAL and (item.kind, item.name) == key and item.noun is noun


def test_meta_is_there_also_where_none_was_given():
    assert Item("tool", "t", NOUNS["tool", "t"]).meta == {"com.example/role": "admin"}
    assert Item("prompt", "p", NOUNS["prompt", "p"]).meta == {}


def raises(principal, item):
    raise ValueError("no")


@pytest.mark.parametrize("visible", [lambda p, i: False, lambda p, i: None, lambda p, i: 1, lambda p, i: "yes", raises])
def test_only_true_shows(visible, caplog):
    with caplog.at_level(logging.CRITICAL, "interlock.server"):
        assert is_visible(visible, LOCAL, NOUNS["prompt", "p"]) is False


def test_what_could_not_be_decided_is_in_the_log(caplog):
    is_visible(raises, LOCAL, NOUNS["prompt", "p"])
    assert "prompt 'p'" in caplog.text and "ValueError: no" in caplog.text


async def answers_later(principal, item):
    return True


@pytest.mark.parametrize("wrong", [answers_later, "admins", lambda principal: True, lambda a, b, c: True])
def test_it_answers_at_once(wrong):
    check_visible(lambda principal, item: True)
    with pytest.raises(LocalError, match="at once"):
        check_visible(wrong)


@needs_deferred
def test_its_annotations_may_be_for_type_checkers_alone():
    check_visible(define("def f(principal: Principal, item: Item) -> bool: return True"))
