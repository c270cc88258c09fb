"""server/registry/resource_set.py: fixed URIs and templates are kept apart and read by one rule."""

import pytest

from interlock.server.execution.thread_pool import Threads
from interlock.server.registry.resource_set import ResourceSet
from interlock.server.resources.resource import RegisteredResource
from interlock.server.resources.template import RegisteredTemplate
from interlock.wire.errors import InternalError, MethodNotFound, Refused, ResourceNotFound, ToolError
from interlock.wire.types.resources import ResourceParams
from support.doubles import Spoken


async def fixed() -> str:
    return "fixed"


async def by_number(n: int) -> str:
    return f"number {n}"


async def by_name(name: str) -> str:
    return f"name {name}"


def holding(**functions):
    found = ResourceSet(Threads(1), None)
    for uri, function in functions.items():
        found.catalogue_of(uri).add(uri, item := found.make(uri, function), item.noun)
    return found


async def read(found, uri):
    result = await found.read(Spoken("resources/read", ResourceParams(uri=uri)))
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
    [contents] = result["contents"]
    assert contents.uri == uri
    return contents.text


def test_a_brace_makes_a_template():
    found = ResourceSet(Threads(1), None)
    assert isinstance(found.make("a:b", fixed), RegisteredResource)
    assert isinstance(found.make("a:{n}", by_number), RegisteredTemplate)
    assert found.catalogue_of("a:b") is found.fixed and found.catalogue_of("a:{n}") is found.templates


async def test_the_exact_one_wins_then_the_first_that_fits():
    found = holding(**{"a:{n}": by_number, "a:{name}": by_name, "a:7": fixed})
    assert await read(found, "a:7") == "fixed"
    assert await read(found, "a:8") == "number 8"
    assert await read(found, "a:x") == "name x"


async def test_what_is_not_there_is_named():
    with pytest.raises(ResourceNotFound) as caught:
        await read(holding(**{"a:{n}": by_number}), "a:x")
    assert caught.value.data == {"uri": "a:x"}


@pytest.mark.parametrize("uri", ["a:b", "a:{n}"])
def test_either_kind_offers_resources(uri):
    assert holding(**{uri: fixed if uri == "a:b" else by_number}).offered


async def test_without_any_the_method_does_not_exist():
    found = holding()
    assert not found.offered
    with pytest.raises(MethodNotFound):
        await read(found, "a:b")


def failing(error):
    async def function():
        raise error

    return holding(**{"a:b": function})


@pytest.mark.parametrize(
    "error", [RuntimeError("secret"), SystemExit(1), KeyboardInterrupt(), ExceptionGroup("g", [ValueError()])]
)
async def test_a_failure_is_told_by_reference(error, caplog):
    with pytest.raises(InternalError) as caught:
        await read(failing(error), "a:b")
    told, _, reference = caught.value.message.partition(" (reference ")
    assert told == "The resource a:b failed unexpectedly" and len(reference) == 9
    assert caught.value.data == {"uri": "a:b"}
    assert reference[:-1] in caplog.text and "secret" not in caught.value.message


async def test_an_error_that_cannot_be_told_is_told_by_reference():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError

    with pytest.raises(InternalError, match="failed unexpectedly"):
        await read(failing(Mute()), "a:b")


async def test_words_of_the_author_and_refusals_go_out():
    with pytest.raises(InternalError, match="out of ink"):
        await read(failing(ToolError("out of ink")), "a:b")
    with pytest.raises(Refused) as caught:
        await read(failing(Refused("mine", code=7)), "a:b")
    assert caught.value.code == 7
