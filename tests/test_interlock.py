"""interlock/__init__.py: the names are loaded when they are first used, and stay the same objects."""

import importlib

import pytest

import interlock
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
