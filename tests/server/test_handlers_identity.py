"""server/handlers.py: what is the same in every answer of a server."""

import msgspec
import pytest

from interlock.revisions.table import pick
from interlock.server.handlers import About
from interlock.wire.errors import LocalError
from interlock.wire.messages import encode
from interlock.wire.meta import SERVER_INFO
from interlock.wire.types.capabilities import ServerCapabilities
from interlock.wire.types.common import Implementation

INFO = Implementation(name="s", version="1")


def plain(value):
    return msgspec.json.decode(encode(value))


def test_an_introduction_names_revisions_capabilities_and_hints():
    about = About(INFO, pick(("2025-06-18",)), instructions="Ask.", cache_seconds=2)
    assert plain(about.introduction(ServerCapabilities())) == {
        "supportedVersions": ["2025-06-18"],
        "capabilities": {},
        "ttlMs": 2000,
        "cacheScope": "private",
        "instructions": "Ask.",
        "_meta": {SERVER_INFO: {"name": "s", "version": "1"}},
    }


def test_instructions_that_were_not_given_are_left_out():
    assert "instructions" not in About(INFO, pick(None)).introduction(ServerCapabilities())


def test_who_answers_is_left_out_where_that_is_off():
    assert "_meta" not in About(INFO, pick(None), identify=False).introduction(ServerCapabilities())
    named = About(INFO, pick(None))
    first, second = (named.introduction(ServerCapabilities()) for _ in range(2))
    assert first["_meta"] is not second["_meta"]  # nobody changes another's


def test_what_is_not_for_everybody_is_in_no_shared_cache():
    about = About(INFO, pick(None), cache_scope="public")
    assert about.hints_for(False)["cacheScope"] == "public"
    assert about.hints_for(True)["cacheScope"] == "private"
    assert about.introduction(ServerCapabilities(), private=True)["cacheScope"] == "private"


def test_what_is_declared_is_a_copy():
    mine = {"com.example/x": {"a": 1}}
    about = About(INFO, pick(None), extensions=mine)
    mine["com.example/x"]["a"] = 2
    assert about.declared == {"experimental": {}, "extensions": {"com.example/x": {"a": 1}}}


def test_mistakes_are_told_at_once():
    with pytest.raises(LocalError, match="extension"):
        About(INFO, pick(None), extensions={"nope": {}})
    with pytest.raises(LocalError, match="cache_scope"):
        About(INFO, pick(None), cache_scope="mine")
