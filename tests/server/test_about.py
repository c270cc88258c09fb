"""server/about.py: what is the same in every answer of a server."""

import msgspec
import pytest

from interlock.revisions.table import pick
from interlock.server.about import About
from interlock.wire.errors import LocalError
from interlock.wire.frames import encode
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
    }


def test_instructions_that_were_not_given_are_left_out():
    assert "instructions" not in About(INFO, pick(None)).introduction(ServerCapabilities())


def test_a_page_says_who_answered_unless_that_is_off():
    named, unnamed = About(INFO, pick(None)), About(INFO, pick(None), identify=False)
    assert plain(named.page_members())["_meta"] == {SERVER_INFO: {"name": "s", "version": "1"}}
    assert "_meta" not in unnamed.page_members()
    assert named.page_members()["_meta"] is not named.page_members()["_meta"]  # nobody changes another's


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
