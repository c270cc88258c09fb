"""What servers give, in the words a model is given."""

from interlock.client.results import CallResult
from interlock.host.models.model import CallPart
from interlock.host.speech import contents_blocks, failed_block, prompt_blocks, result_block, text_block
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

CALL = CallPart("c1", "notes__add", {})


def given(*blocks, **more):
    return result_block(CALL, CallResult([*blocks], **more))


def test_every_kind_of_block():
    image, sound = ImageContent(data="aGk=", mime_type="image/png"), AudioContent(data="aGk=", mime_type="audio/wav")
    inside = EmbeddedResource(resource=ResourceContents(uri="note://1", text="milk"))
    link = ResourceLink(uri="note://2", name="bread")
    found = given(TextContent(text="hi"), image, sound, inside, link, {"type": "new", "x": 1})
    assert found == {
        "type": "tool_result",
        "toolUseId": "c1",
        "content": [
            text_block("hi"),
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            text_block("[resource note://1]\nmilk"),
            text_block("[a resource that can be read: note://2 (bread)]"),
            text_block('{"type":"new","x":1}'),
        ],
    }


def test_structure_without_text_is_written_out():
    assert given(structured={"a": 1})["content"] == [text_block('{"a":1}')]
    assert given(TextContent(text="x"), structured={"a": 1})["content"] == [text_block("x")]


def test_what_a_tool_did_not_keep_is_told():
    assert "promised: a is no number" in given(structured={"a": "x"}, mismatch="a is no number")["content"][1]["text"]


def test_failures_are_marked():
    assert given(TextContent(text="no"), is_error=True)["isError"] is True
    assert failed_block(CALL, "denied") == {
        "type": "tool_result",
        "toolUseId": "c1",
        "content": [text_block("denied")],
        "isError": True,
    }


def test_attached_resources_name_their_server():
    text = ResourceContents(uri="file:///a", text="A")
    image = ResourceContents(uri="file:///b", blob="aGk=", mime_type="image/png")
    other = ResourceContents(uri="file:///c", blob="aGk=", mime_type="application/zip")
    first, second, third, fourth = contents_blocks("files", [text, image, other])
    assert first == text_block("[resource file:///a of the server 'files']\nA")
    assert second == text_block("[resource file:///b of the server 'files']")
    assert third == {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert "application/zip" in fourth["text"]


def test_messages_of_prompts():
    assert prompt_blocks(TextContent(text="Review this")) == [text_block("Review this")]
