"""interlock/__init__.py: the names are loaded when they are first used, and stay the same objects."""

import importlib
import inspect
import typing
from collections.abc import Iterator

import pytest

import interlock
import interlock.testing
from interlock.server.context import BlockingContext
from interlock.server.server import Server


def test_a_name_is_the_one_of_its_module():
    assert interlock.Server is Server
    assert interlock.Server is interlock.Server


@pytest.mark.parametrize("name", [name for name in interlock.__all__ if name != "__version__"])
def test_every_name_can_be_had(name):
    value = getattr(interlock, name)
    assert getattr(importlib.import_module(value.__module__), name) is value


def test_the_version_is_the_one_of_the_package():
    from importlib.metadata import version

    assert interlock.__version__ == version("interlock")


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="Gateway"):
        interlock.Gateway
    assert not hasattr(interlock, "_nothing")


def test_the_names_can_be_listed_without_loading_anything():
    assert dir(interlock) == sorted(interlock.__all__)


# --- hints: whoever writes documentation or injects arguments evaluates them ---


def functions_of(kind: type) -> Iterator[tuple[str, typing.Any]]:
    """What is called on a class or made by it, as it was written there."""
    for name, member in vars(kind).items():
        inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if inspect.isfunction(inner) and (not name.startswith("_") or name in ("__init__", "__call__")):
            yield name, inner


def classes_in(hint: typing.Any) -> Iterator[type]:
    if inspect.isclass(hint) and hint.__module__.startswith("interlock."):
        yield hint
    for inner in typing.get_args(hint):
        yield from (found for each in (inner if isinstance(inner, list) else [inner]) for found in classes_in(each))


def test_the_hints_of_everything_public_can_be_evaluated():
    """Of the public names, of what their hints speak of, and so on."""
    left = [getattr(interlock, name) for name in interlock.__all__]
    left += [getattr(interlock.testing, name) for name in interlock.testing.__all__]
    left.append(BlockingContext)
    seen: set[int] = set()
    failed: list[str] = []
    while left:
        item = left.pop()
        if id(item) in seen or not callable(item):
            continue
        seen.add(id(item))
        own = [("", item), *(functions_of(item) if inspect.isclass(item) else ())]
        for name, each in own:
            try:
                hints = typing.get_type_hints(each, include_extras=True)
            except (NameError, TypeError) as error:
                failed.append(f"{item.__qualname__}.{name}: {error}")
                continue
            left += [found for hint in hints.values() for found in classes_in(hint)]
    assert not failed
    assert len(seen) > 150, "it followed the hints"
