"""Which model answers a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.host.callbacks.model_choice import needs_of, pick
from interlock.host.models.model import ModelFacts
from interlock.wire.errors import InvalidParams
from support.properties import many


class Named:
    def __init__(self, name, cheapness=0.5, speed=0.5, intelligence=0.5, can=()):
        traits = {"cheapness": cheapness, "speed": speed, "intelligence": intelligence}
        self.facts = ModelFacts(name=name, can=frozenset(can), **traits)

    def reply(self, request):
        raise NotImplementedError


SMALL = Named("acme-haiku-3", cheapness=0.9, speed=0.9, intelligence=0.2)
MIDDLE = Named("acme-sonnet-4", cheapness=0.5, speed=0.6, intelligence=0.6, can=["images", "tools"])
LARGE = Named("acme-opus-4", cheapness=0.1, speed=0.2, intelligence=1.0, can=["images", "audio", "tools"])
MODELS = [MIDDLE, SMALL, LARGE]


def hinted(*names, **priorities):
    return {"hints": [{"name": name} for name in names], **priorities}


def test_without_preferences_it_is_the_first():
    assert pick(MODELS, None) is pick(MODELS, {}) is MIDDLE


def test_hints_are_parts_of_names_and_go_in_order():
    assert pick(MODELS, hinted("opus", "haiku")) is LARGE
    assert pick(MODELS, hinted("gpt", "HAIKU", "opus")) is SMALL
    assert pick(MODELS, hinted("", "nobody")) is MIDDLE


def test_hints_go_before_numbers_which_break_ties():
    assert pick(MODELS, hinted("haiku", intelligencePriority=1)) is SMALL
    assert pick(MODELS, hinted("acme", intelligencePriority=1)) is LARGE
    assert pick(MODELS, hinted("-4", costPriority=1, intelligencePriority=0.1)) is MIDDLE


@pytest.mark.parametrize(
    "priorities, best",
    [
        ({"costPriority": 1}, SMALL),
        ({"speedPriority": 1}, SMALL),
        ({"intelligencePriority": 0.4}, LARGE),
        ({"intelligencePriority": 1, "speedPriority": 1}, MIDDLE),  # 1.2 beside 1.2 and 1.1: the first of the best
    ],
)
def test_numbers_weigh_traits(priorities, best):
    assert pick(MODELS, priorities) is best


def test_only_those_who_can_take_it_are_asked():
    assert pick(MODELS, hinted("haiku"), frozenset({"audio"})) is LARGE
    assert pick([SMALL], None, frozenset({"images"})) is None
    assert pick([], None) is None


@pytest.mark.parametrize("value", [1.5, -1, "1", True, None])
def test_priorities_beside_their_bounds_are_refused(value):
    with pytest.raises(InvalidParams, match="speedPriority"):
        pick(MODELS, {"speedPriority": value})


@pytest.mark.parametrize("hints", [5, "opus", [5], [{"name": 5}], [{}], None])
def test_hints_that_are_none_hint_at_nothing(hints):
    assert pick(MODELS, {"hints": hints}) is MIDDLE


def test_preferences_are_an_object():
    with pytest.raises(InvalidParams):
        pick(MODELS, [])


@given(st.permutations(MODELS), st.lists(st.sampled_from(["opus", "sonnet", "haiku", "gpt"]), max_size=4))
@many(50)
def test_whoever_fits_the_first_fitting_hint_is_taken(models, hints):
    fitting = [hint for hint in hints if hint != "gpt"]
    found = pick(models, hinted(*hints))
    assert fitting[0] in found.facts.name if fitting else found is models[0]


def test_needs_are_read_off_the_blocks():
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    used = {"type": "tool_result", "toolUseId": "1", "content": [{"type": "audio", "data": "", "mimeType": "a/b"}]}
    ask = {"messages": [{"role": "user", "content": image}, {"role": "user", "content": [used]}]}
    assert needs_of(ask) == {"images", "audio", "tools"}
    text = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}
    assert needs_of(text) == frozenset()
    assert needs_of({**text, "tools": [{"name": "t"}]}) == {"tools"}
