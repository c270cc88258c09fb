"""server/handlers.py: what is registered is declared, and nothing else."""

import msgspec

from interlock.server.handlers import declared


def told(own=None, **offered):
    return msgspec.to_builtins(declared(own or {}, **offered))


def test_nothing_is_nothing():
    assert told() == told(tools=False, logging=False) == told({"experimental": {}}) == {}


def test_each_in_its_form():
    assert told(tools=True, resources=True, prompts=True, completions=True, logging=True) == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True, "subscribe": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }


def test_what_the_author_adds():
    own = {"experimental": {"x": {}}, "extensions": {"com.example/y": {"z": 1}}}
    assert told(own) == own
