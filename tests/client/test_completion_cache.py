"""client/completion_cache.py: kept for a while, and not asked for with every letter."""

import asyncio

import pytest

from interlock.client import completion_cache
from interlock.client.completion_cache import Completion, Completions, params_of_completion
from interlock.wire.errors import LocalError, MethodNotFound
from support.virtual_time import virtual_time


def asked_for(value, argument="city", prompt="trip", known=None):
    return params_of_completion(argument, value, prompt, None, known)


class Source:
    def __init__(self, result=None):
        self.asked = []
        self.result = result

    async def __call__(self, params):
        value = params["argument"]["value"]
        self.asked.append(value)
        return {"completion": {"values": [value + "!"]}} if self.result is None else self.result


def test_the_params():
    assert params_of_completion("city", "G", "trip", None, {"land": "AT"}) == {
        "ref": {"type": "ref/prompt", "name": "trip"},
        "argument": {"name": "city", "value": "G"},
        "context": {"arguments": {"land": "AT"}},
    }
    found = params_of_completion("id", "", None, "note://{id}", None)
    assert found == {"ref": {"type": "ref/resource", "uri": "note://{id}"}, "argument": {"name": "id", "value": ""}}


@pytest.mark.parametrize(
    "given",
    [
        ("a", "", None, None, None),
        ("a", "", "p", "t", None),
        ("a", 7, "p", None, None),
        (None, "", "p", None, None),
        ("a", "", "p", None, {"b": 1}),
        ("a", "", 7, None, None),
    ],
)
def test_what_is_asked_wrongly_is_not_sent(given):
    with pytest.raises(LocalError, match="complete"):
        params_of_completion(*given)


@virtual_time
async def test_the_first_is_asked_at_once_and_of_those_behind_it_the_newest():
    source, found = Source(), Completions()
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert (await found.get(asked_for("G"), source)).values == ("G!",)
    assert loop.time() == began, "nobody waits for nothing"
    typed = [asyncio.ensure_future(found.get(asked_for("G" + rest), source)) for rest in ("r", "ra", "raz")]
    answers = await asyncio.gather(*typed)
    assert [answer.superseded for answer in answers] == [True, True, False]
    assert answers[-1].values == ("Graz!",)
    assert source.asked == ["G", "Graz"]


@virtual_time
async def test_other_arguments_are_others():
    source, found = Source(), Completions()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for argument, prompt in (("a", "p"), ("b", "p"), ("a", "q")):
        assert not (await found.get(asked_for("x", argument, prompt), source)).superseded
    assert loop.time() == began


@virtual_time
async def test_an_answer_is_kept_for_a_while():
    source, found = Source(), Completions()
    for known in ({"land": "AT"}, {"land": "DE"}, {"land": "AT"}):
        await asyncio.sleep(1)
        await found.get(asked_for("G", known=known), source)
    assert len(source.asked) == 2, "what else is known makes another question of it"
    await asyncio.sleep(completion_cache.KEPT)
    await found.get(asked_for("G", known={"land": "AT"}), source)
    assert len(source.asked) == 3
    found.forget()
    await asyncio.sleep(1)
    await found.get(asked_for("G", known={"land": "AT"}), source)
    assert len(source.asked) == 4


@virtual_time
async def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(completion_cache, "MOST_KEPT", 3)
    monkeypatch.setattr(completion_cache, "MOST_FIELDS", 3)
    source, found = Source(), Completions()
    for number in range(10):
        await found.get(asked_for("x", f"a{number}"), source)
    assert len(found._kept) == len(found._asked) == len(found._newest) == 3


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({}, Completion()),
        ({"completion": None}, Completion()),
        ({"completion": {}}, Completion()),
        ({"completion": {"values": "abc"}}, Completion()),
        ({"completion": {"values": ["a", 7, None, "b"], "total": "many", "hasMore": "yes"}}, Completion(("a", "b"))),
        ({"completion": {"values": ["a"], "total": 9, "hasMore": True}}, Completion(("a",), 9, True)),
        ({"completion": {"values": ["a"] * 5_000}}, Completion(("a",) * completion_cache.MOST_VALUES, None, True)),
        ({"completion": {"values": [], "total": -1}}, Completion()),
        ({"completion": {"values": [], "total": True}}, Completion()),
    ],
    ids=str,
)
async def test_missing_and_partial_answers_are_answers(result, expected):
    assert await Completions().get(asked_for(""), Source(result)) == expected


async def test_a_server_without_completion_has_no_suggestions():
    async def missing(params):
        raise MethodNotFound("no")

    assert await Completions().get(asked_for(""), missing) == Completion()


@virtual_time
async def test_one_who_gives_up_harms_nobody():
    source, found = Source(), Completions()
    await found.get(asked_for("a"), source)
    second, third = (asyncio.ensure_future(found.get(asked_for(value), source)) for value in ("ab", "abc"))
    await asyncio.sleep(0)
    third.cancel()
    assert (await second).superseded
    assert (await found.get(asked_for("abcd"), source)).values == ("abcd!",)
