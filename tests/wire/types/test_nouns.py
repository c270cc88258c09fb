"""wire/types/*.py: every noun is read from and written in the specification's own words.

The files hold shapes and no logic, so one test walks them all: each instance the official schema of the newest
revision would accept must survive reading and writing.
"""

import importlib
import pkgutil

import msgspec
import pytest
from msgspec import UNSET

import interlock.wire.types
from interlock.wire.types.common import LOG_LEVELS, Noun
from interlock.wire.types.completion import CompleteParams, PromptRef, ResourceRef
from interlock.wire.types.content import CONTENT_TYPES, Content, ResourceContents
from interlock.wire.types.lifecycle import DiscoverResult, InitializeParams, SetLevelParams
from interlock.wire.types.notifications import Cancelled, ListenParams, Progress
from interlock.wire.types.prompts import GetPromptParams, Prompt, PromptMessage
from interlock.wire.types.resources import Resource, ResourceParams, ResourceTemplate
from interlock.wire.types.tools import CallToolParams, ListParams, Tool

ICON = {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
ANNOTATIONS = {"audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"}
INFO = {
    "name": "n",
    "version": "1",
    "title": "t",
    "description": "d",
    "icons": [ICON],
    "websiteUrl": "https://example.com",
}
META = {"com.example/x": [1]}

FULL = [
    (
        Tool,
        {
            "name": "n",
            "title": "t",
            "description": "d",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
            "annotations": {
                "title": "t",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "icons": [ICON],
            "_meta": META,
        },
    ),
    (
        Resource,
        {
            "uri": "a:b",
            "name": "n",
            "title": "t",
            "description": "d",
            "mimeType": "text/plain",
            "size": 7,
            "icons": [ICON],
            "annotations": ANNOTATIONS,
            "_meta": META,
        },
    ),
    (
        ResourceTemplate,
        {
            "uriTemplate": "a:{b}",
            "name": "n",
            "title": "t",
            "description": "d",
            "mimeType": "text/plain",
            "icons": [ICON],
            "annotations": ANNOTATIONS,
            "_meta": META,
        },
    ),
    (
        Prompt,
        {
            "name": "n",
            "title": "t",
            "description": "d",
            "arguments": [{"name": "a", "title": "t", "description": "d", "required": True}],
            "icons": [ICON],
            "_meta": META,
        },
    ),
    (ResourceContents, {"uri": "a:b", "mimeType": "x/y", "text": "hi", "_meta": META}),
    (ResourceContents, {"uri": "a:b", "blob": "aGk="}),
    (Content, {"type": "text", "text": "hi", "annotations": ANNOTATIONS, "_meta": META}),
    (Content, {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": ANNOTATIONS, "_meta": META}),
    (Content, {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": ANNOTATIONS, "_meta": META}),
    (
        Content,
        {"type": "resource", "resource": {"uri": "a:b", "text": "hi"}, "annotations": ANNOTATIONS, "_meta": META},
    ),
    (
        Content,
        {
            "type": "resource_link",
            "uri": "a:b",
            "name": "n",
            "title": "t",
            "description": "d",
            "mimeType": "x/y",
            "size": 1,
            "icons": [ICON],
            "annotations": ANNOTATIONS,
            "_meta": META,
        },
    ),
    (PromptMessage, {"role": "assistant", "content": {"type": "text", "text": "hi"}}),
    (InitializeParams, {"protocolVersion": "v", "capabilities": {"roots": {"listChanged": True}}, "clientInfo": INFO}),
    (
        DiscoverResult,
        {
            "supportedVersions": ["v"],
            "capabilities": {"resources": {"subscribe": True, "listChanged": False}},
            "instructions": "i",
            "_meta": META,
        },
    ),
    (SetLevelParams, {"level": "info"}),
    (
        CompleteParams,
        {
            "ref": {"type": "ref/prompt", "name": "n", "title": "t"},
            "argument": {"name": "a", "value": "v"},
            "context": {"arguments": {"b": "c"}},
        },
    ),
    (CompleteParams, {"ref": {"type": "ref/resource", "uri": "a:{b}"}, "argument": {"name": "a", "value": ""}}),
    (Cancelled, {"requestId": "a", "reason": "r"}),
    (Progress, {"progressToken": 1, "progress": 0.5, "total": 1.0, "message": "m"}),
    (ListParams, {"cursor": ""}),
    (GetPromptParams, {"name": "n", "arguments": {"a": "b"}}),
    (ResourceParams, {"uri": "a:b"}),
    (CallToolParams, {"name": "n", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}),
]


@pytest.mark.parametrize(("kind", "members"), FULL, ids=lambda value: getattr(value, "__name__", None))
def test_every_member_survives_reading_and_writing(kind, members):
    read = msgspec.json.decode(msgspec.json.encode(members), type=kind)
    assert msgspec.json.decode(msgspec.json.encode(read)) == members


@pytest.mark.parametrize(("kind", "members"), FULL, ids=lambda value: getattr(value, "__name__", None))
def test_unknown_members_are_ignored(kind, members):
    # Every revision may add members; a reader that refuses them would refuse its successors.
    read = msgspec.json.decode(msgspec.json.encode({**members, "aMemberOfTheFuture": 1}), type=kind)
    assert msgspec.json.decode(msgspec.json.encode(read)) == members


def nouns() -> list[type[Noun]]:
    for module in pkgutil.iter_modules(interlock.wire.types.__path__):
        importlib.import_module(f"interlock.wire.types.{module.name}")
    found, front = [], [Noun]
    while front:
        for kind in front.pop().__subclasses__():
            if kind.__module__.startswith("interlock.wire.types"):
                found.append(kind)
                front.append(kind)
    return found


def test_no_noun_writes_what_was_never_said():
    # A member that is absent stays absent: null is no value of any optional member in the schemas.
    for kind in nouns():
        for field in msgspec.structs.fields(kind):
            assert field.default is not None, f"{kind.__name__}.{field.name} would be written as null"


def test_names_on_the_wire_are_camel_case():
    for kind in nouns():
        for field in msgspec.structs.fields(kind):
            assert "_" not in field.encode_name.lstrip("_"), f"{kind.__name__}.{field.encode_name}"


def test_a_listener_that_names_nothing_hears_nothing():
    wanted = msgspec.json.decode(b'{"notifications":{}}', type=ListenParams).notifications
    assert not (wanted.tools_list_changed or wanted.prompts_list_changed or wanted.resources_list_changed)
    assert wanted.resource_subscriptions == set()


def test_two_filters_do_not_share_their_subscriptions():
    one, other = (msgspec.json.decode(b'{"notifications":{}}', type=ListenParams).notifications for _ in range(2))
    one.resource_subscriptions.add("a:b")
    assert other.resource_subscriptions == set()


def test_the_levels_are_those_of_rfc_5424_in_order():
    assert LOG_LEVELS == ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def test_a_reference_is_told_apart_by_its_type():
    prompt = msgspec.json.decode(b'{"type":"ref/prompt","name":"n"}', type=PromptRef | ResourceRef)
    assert isinstance(prompt, PromptRef) and prompt.title is UNSET


def test_the_content_types_are_those_of_the_union():
    assert set(CONTENT_TYPES) == set(Content.__args__)


@pytest.mark.parametrize("role", ["system", "", None])
def test_a_message_is_of_the_user_or_the_assistant(role):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"role": role, "content": {}}, PromptMessage)
