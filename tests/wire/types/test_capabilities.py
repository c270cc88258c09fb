"""wire/types/capabilities.py: what was declared, and nothing that was not."""

import msgspec
import pytest

from interlock.wire.types.capabilities import ClientCapabilities, ServerCapabilities


def client(text: str) -> ClientCapabilities:
    return msgspec.json.decode(text, type=ClientCapabilities)


def server(text: str) -> ServerCapabilities:
    return msgspec.json.decode(text, type=ServerCapabilities)


@pytest.mark.parametrize(
    ("text", "path", "declared"),
    [
        ("{}", "sampling", False),
        ('{"sampling":{}}', "sampling", True),
        ('{"sampling":{}}', "sampling.tools", False),
        ('{"sampling":{"tools":{}}}', "sampling.tools", True),
        ('{"sampling":{"tools":true}}', "sampling.tools", False),
        ('{"sampling":{"tools":null}}', "sampling.tools", False),
        ('{"roots":{"listChanged":true}}', "roots", True),
        ('{"roots":{"listChanged":true}}', "roots.listChanged", True),
        ('{"roots":{"listChanged":false}}', "roots.listChanged", False),
        ('{"roots":{}}', "roots.listChanged", False),
        ('{"elicitation":{}}', "elicitation", True),
        # An empty object means form only (2025-11-25 client/elicitation#capabilities).
        ('{"elicitation":{}}', "elicitation.form", True),
        ('{"elicitation":{}}', "elicitation.url", False),
        ('{"elicitation":{"form":{}}}', "elicitation.form", True),
        ('{"elicitation":{"url":{}}}', "elicitation.url", True),
        ('{"elicitation":{"url":{}}}', "elicitation.form", False),
        ('{"elicitation":{"form":{},"url":{}}}', "elicitation.form", True),
        ("{}", "elicitation.form", False),
        ('{"extensions":{"com.example/x":{}}}', "extensions.com.example/x", True),
        ('{"extensions":{"com.example/x":{}}}', "extensions.com.example/y", False),
        ('{"experimental":{"a":{}}}', "experimental.a", True),
        ('{"unheard":{}}', "unheard", False),
    ],
)
def test_what_a_client_declared(text, path, declared):
    assert client(text).can(path) is declared


@pytest.mark.parametrize("path", ["can", "__class__", "__doc__", "", "."])
def test_only_capabilities_can_be_declared(path):
    assert not client("{}").can(path)
    assert not server("{}").can(path)


@pytest.mark.parametrize("text", ['{"sampling":true}', '{"sampling":null}', '{"roots":[]}', '{"extensions":{"a":1}}'])
def test_a_capability_is_an_object(text):
    with pytest.raises(msgspec.ValidationError):
        client(text)


def test_experimental_values_are_taken_as_they_come():
    # A summary in circulation writes `true` there (handshake.md §16.11).
    assert client('{"experimental":{"a":true}}').can("experimental")


@pytest.mark.parametrize(
    ("text", "path", "declared"),
    [
        ("{}", "tools", False),
        ('{"tools":{}}', "tools", True),
        ('{"tools":{}}', "tools.listChanged", False),
        ('{"tools":{"listChanged":true}}', "tools.listChanged", True),
        ('{"tools":{"listChanged":false}}', "tools.listChanged", False),
        ('{"resources":{"subscribe":true}}', "resources.subscribe", True),
        ('{"resources":{"subscribe":true}}', "resources.listChanged", False),
        ('{"resources":{}}', "resources.subscribe", False),
        ('{"logging":{}}', "logging", True),
        ('{"completions":{}}', "completions", True),
        ('{"completions":{"a":true}}', "completions.a", False),
    ],
)
def test_what_a_server_declared(text, path, declared):
    assert server(text).can(path) is declared


@pytest.mark.parametrize("text", ['{"tools":true}', '{"tools":{"listChanged":1}}', '{"resources":null}'])
def test_a_servers_capabilities_have_their_types(text):
    with pytest.raises(msgspec.ValidationError):
        server(text)


def test_unknown_capabilities_are_legal():
    assert server('{"tools":{"streaming":true},"prompts":{"dynamic":1},"future":[]}').can("prompts")
