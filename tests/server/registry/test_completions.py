"""server/registry/completions.py: who suggests what, and how much of it goes out."""

from types import SimpleNamespace

import pytest
from msgspec import UNSET

from interlock.server.context import Context
from interlock.server.execution.thread_pool import Threads
from interlock.server.registry.completions import LONGEST_TYPED, MOST_VALUES, Completions, Suggestions
from interlock.wire.errors import InternalError, InvalidParams, LocalError, MethodNotFound, ToolError
from interlock.wire.types.completion import (
    CompleteParams,
    CompletionArgument,
    CompletionContext,
    PromptRef,
    ResourceRef,
)
from interlock.wire.types.prompts import Prompt
from interlock.wire.types.resources import ResourceTemplate
from support.doubles import Spoken


def spoken(argument="city", value="", context=UNSET):
    asked = CompletionArgument(name=argument, value=value)
    return Spoken("completion/complete", CompleteParams(ref=PromptRef(name="p"), argument=asked, context=context))


PROMPT = SimpleNamespace(noun=Prompt(name="p"), names=("city",))
TEMPLATE = SimpleNamespace(noun=ResourceTemplate(uri_template="p", name="p"), names=("city",))


def names_of(prompt, template):
    return ("city", "country") if "p" in (prompt, template) else None


def completions(function, argument="city"):
    found = Completions(Threads(2), names_of)
    found.register("p", None, argument)(function)
    return found


async def complete(function, **asked):
    return (await completions(function).complete(spoken(**asked)))["completion"]


async def test_the_value_so_far_reaches_the_function():
    async def city(value):
        return [name for name in ("Wien", "Weimar", "Graz") if name.startswith(value)]

    assert await complete(city, value="W") == {"values": ["Wien", "Weimar"], "total": 2, "hasMore": False}


async def test_known_arguments_reach_it_if_it_likes():
    async def city(value: str, known: dict[str, str]):
        return [f"{value} in {known.get('country')}"]

    context = CompletionContext(arguments={"country": "Austria"})
    assert (await complete(city, value="W", context=context))["values"] == ["W in Austria"]
    assert (await complete(city, value="W", context=CompletionContext()))["values"] == ["W in None"]
    assert (await complete(city, value="W"))["values"] == ["W in None"]


async def test_a_plain_function_and_a_context_work():
    def city(value: str, ctx: Context):
        return [f"{value} for {ctx.client.name}"]

    assert (await complete(city, value="W"))["values"] == ["W for unknown"]
    assert completions(city).takes_context and not completions(lambda value: []).takes_context


@pytest.mark.parametrize(
    ("count", "sent", "more"), [(0, 0, False), (100, 100, False), (101, 100, True), (500, 100, True)]
)
async def test_a_hundred_go_out_in_their_order(count, sent, more):
    async def city(value):
        return tuple(str(number) for number in range(count))

    found = await complete(city)
    assert found == {"values": [str(number) for number in range(sent)], "total": count, "hasMore": more}
    assert MOST_VALUES == 100


async def test_nobody_completes_it():
    async def city(value): ...

    assert await complete(city, argument="country") == {"values": [], "total": 0, "hasMore": False}


@pytest.mark.parametrize(
    ("prompt", "template", "argument"),
    [(None, None, "city"), ("p", "p", "city"), ("q", None, "city"), ("p", None, "x")],
)
def test_a_completion_is_for_one_thing_that_is_there(prompt, template, argument):
    with pytest.raises(LocalError):
        Completions(Threads(1), names_of).register(prompt, template, argument)


@pytest.mark.parametrize(
    ("ref", "told"), [(PromptRef(name="q"), "Unknown prompt: 'q'"), (ResourceRef(uri="q"), "Unknown resource template")]
)
async def test_what_is_not_there_cannot_be_completed(ref, told):
    async def city(value): ...

    exchange = spoken()
    exchange.params.ref = ref
    with pytest.raises(InvalidParams, match=told):
        await completions(city).complete(exchange)


async def test_without_any_the_method_does_not_exist():
    with pytest.raises(MethodNotFound):
        await Completions(Threads(1), names_of).complete(spoken())


async def test_an_unknown_argument_is_refused():
    async def city(value): ...

    with pytest.raises(InvalidParams, match="'planet'"):
        await complete(city, argument="planet")


@pytest.mark.parametrize("value", [None, "abc", [1], {"a": 1}, ["a", None]])
async def test_what_is_no_list_of_strings_is_an_error_of_the_server(value):
    async def city(_):
        return value

    with pytest.raises(InternalError, match="failed unexpectedly"):
        await complete(city)


def test_there_is_one_completion_for_an_argument():
    async def city(value): ...

    found = completions(city)
    found.register(None, "p", "city")(city)  # a template of that name is another place
    with pytest.raises(LocalError, match="already"):
        found.register("p", None, "city")(city)


def test_a_completion_takes_one_or_two():
    async def none(ctx: Context): ...
    async def three(a, b, c): ...

    for function in (none, three):
        with pytest.raises(LocalError, match="takes"):
            completions(function)


def test_it_is_offered_from_the_first_on():
    async def city(value): ...

    assert not Completions(Threads(1), names_of).offered
    assert completions(city).offered


# --- what was said beside a prompt or a template ---


async def test_values_to_choose_from_are_ranked():
    found = Completions(Threads(1), names_of)
    found.keep(found.made("p", PROMPT, {"city": ["Linz", "Wien", "Wels", "Neuwied"]}))
    told = (await found.complete(spoken(value="w")))["completion"]
    assert told == {"values": ["Wien", "Wels", "Neuwied"], "total": 3, "hasMore": False}


async def test_a_function_may_stand_there_too():
    def city(value: str):
        return [value * 2]

    found = Completions(Threads(1), names_of)
    found.keep(found.made("p", TEMPLATE, {"city": city}))
    exchange = spoken(value="ab")
    exchange.params.ref = ResourceRef(uri="p")
    assert (await found.complete(exchange))["completion"]["values"] == ["abab"]


@pytest.mark.parametrize("source", ["Wien", [1], ["Wien", None]])
def test_what_is_neither_is_refused(source):
    with pytest.raises(LocalError, match="list of strings"):
        Completions(Threads(1), names_of).made("p", PROMPT, {"city": source})


def test_what_completes_no_argument_is_refused():
    with pytest.raises(LocalError, match="'p' has no such argument"):
        Completions(Threads(1), names_of).made("p", PROMPT, {"town": ["Wien"]})


async def test_what_is_gone_takes_its_suggestions_along():
    async def city(value): ...

    found = completions(city)
    found.register(None, "p", "city")(city)
    found.forget(prompt="p")
    assert found.offered  # a declared capability is kept (CAP-02)
    assert (await found.complete(spoken()))["completion"]["values"] == []
    found.register("p", None, "city")(city)
    with pytest.raises(LocalError, match="already"):
        found.register(None, "p", "city")(city)


# --- more than was fetched ---


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Suggestions(["a"]), {"values": ["a"], "total": 1, "hasMore": False}),
        (Suggestions(["a"], total=7), {"values": ["a"], "total": 7, "hasMore": True}),
        (Suggestions(["a"], has_more=True), {"values": ["a"], "hasMore": True}),
        (Suggestions(["a"], total=1, has_more=False), {"values": ["a"], "total": 1, "hasMore": False}),
        (Suggestions(["a"] * 120, total=7), {"values": ["a"] * 100, "total": 120, "hasMore": True}),
        (Suggestions(["a"] * 120, has_more=False), {"values": ["a"] * 100, "total": 120, "hasMore": True}),
    ],
)
async def test_a_completion_may_know_of_more(given, told):
    async def city(value):
        return given

    assert await complete(city) == told


# --- inputs and failures ---


async def test_only_known_arguments_are_handed_over():
    async def city(value, known):
        return sorted(known)

    context = CompletionContext(arguments={"country": "Austria", "planet": "Earth"})
    assert (await complete(city, context=context))["values"] == ["country"]


async def test_a_value_has_a_longest():
    async def city(value):
        return [str(len(value))]

    assert (await complete(city, value="x" * LONGEST_TYPED))["values"] == [str(LONGEST_TYPED)]
    with pytest.raises(InvalidParams, match="characters"):
        await complete(city, value="x" * (LONGEST_TYPED + 1))


@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit(3), KeyboardInterrupt()])
async def test_a_failure_is_told_by_reference(error, caplog):
    async def city(value):
        raise error

    with pytest.raises(InternalError) as caught:
        await complete(city)
    told, _, reference = caught.value.message.partition(" (reference ")
    assert told == "The completion of city failed unexpectedly"
    assert reference.rstrip(")") in caplog.text and "secret" not in caught.value.message


async def test_words_of_the_author_are_told():
    async def city(value):
        raise ToolError("the map is closed")

    with pytest.raises(InternalError, match="the map is closed"):
        await complete(city)


async def test_a_refusal_goes_out_as_it_is():
    async def city(value):
        raise InvalidParams("no such town")

    with pytest.raises(InvalidParams, match="no such town"):
        await complete(city)


def test_it_is_known_whether_any_of_them_may_log():
    async def silent(value):
        return []

    async def speaks(value, ctx: Context):
        return []

    assert not completions(silent).takes_context
    assert completions(speaks).takes_context
