"""Results that are too long: what is handed on, what is kept, and for how long."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.client.results import CallResult, PromptResult
from interlock.host.gate.result_cap import Cap
from interlock.wire.errors import ResourceNotFound
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock.wire.types.prompts import PromptMessage
from support.properties import many


def text(words: str) -> TextContent:
    return TextContent(text=words)


def address_in(words: str) -> str:
    [found] = re.findall(r"interlock-result://[0-9a-f]{16}", words)
    return found


def whole(cap: Cap, uri: str) -> str:
    """Read on and on, as the notes say."""
    read = ""
    while uri:
        part = cap.read(uri).text
        assert isinstance(part, str)
        here, _, more = part.partition("\n[… ")
        read += here
        uri = more.rpartition(" ")[2].rstrip("]")
    return read


def test_what_is_short_enough_is_handed_on_untouched():
    result = CallResult([text("a"), ImageContent(data="eA==", mime_type="image/png")], structured={"a": 1})
    capped = Cap().apply("s", result)
    assert capped.result is result and not capped.cut and capped.size == 1 + 4 + 7


def test_a_long_text_keeps_its_beginning_and_its_end_and_can_be_read_whole():
    cap = Cap(text=90)
    words = "".join(f"{number:04} " for number in range(100))
    capped = cap.apply("s", CallResult([text(words)], is_error=True))
    shown = capped.result.text
    assert capped.cut and capped.size == 500 and capped.result.is_error
    assert shown.startswith(words[:60] + "\n[the middle") and shown.endswith("]\n" + words[-30:])
    assert whole(cap, address_in(shown)) == words
    assert cap.server_of(address_in(shown)) == "s"


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(9, 100))
@many(100)
def test_all_texts_together_are_no_longer_than_they_may_be_and_nothing_is_lost(texts, limit):
    cap = Cap(text=limit)
    result = CallResult([text(words) for words in texts])
    capped = cap.apply("s", result)
    joined, shown = "".join(texts), capped.result.text
    if len(joined) <= limit:
        assert capped.result is result
        return
    note = re.search(r"\n\[the middle of a text of \d+ characters is left out: it can be read at \S+\]\n", shown)
    assert note is not None
    assert whole(cap, address_in(note[0])) == joined
    handed_on = "".join(block.text for block in capped.result.content).replace(note[0], "")
    assert handed_on == joined[: limit * 2 // 3] + joined[len(joined) - limit // 3 :]


def test_binary_blocks_are_replaced_as_a_whole_when_there_is_no_room():
    cap = Cap(binary=10)
    image, audio = ImageContent(data="x" * 8, mime_type="image/png"), AudioContent(data="y" * 8, mime_type="audio/wav")
    blob = EmbeddedResource(resource=ResourceContents(uri="a:b", blob="eA=="))
    capped = cap.apply("s", CallResult([image, audio, blob]))
    first, second, third = capped.result.content
    assert first is image and "binary data (audio/wav) of 8 characters" in second.text
    assert cap.read(address_in(second.text)).blob == "y" * 8 and "octet-stream" in third.resource.text


def test_structured_content_is_all_there_or_not_at_all():
    cap = Cap(text=50)
    value = {"rows": list(range(40))}
    capped = cap.apply("s", CallResult([text("ok")], structured=value, meta={"a": 1}))
    assert capped.result.structured is None and capped.result.meta == {"a": 1}
    note = capped.result.content[-1].text
    assert note.startswith("[the structured content")
    assert msgspec.json.decode(whole(cap, address_in(note))) == value


def test_links_and_strange_blocks_have_their_room_too():
    cap = Cap(text=200)
    link = ResourceLink(uri="a:b", name="n", description="d")
    capped = cap.apply("s", CallResult([link, {"type": "new", "data": "x" * 300}, link]))
    first, second, third = capped.result.content
    assert first is link and third is link and "[a block of" in second.text


def test_too_many_blocks_keep_the_first_and_the_last():
    cap = Cap(blocks=8)
    capped = cap.apply("s", CallResult([text(str(number)) for number in range(100)]))
    shown = [block.text for block in capped.result.content]
    assert len(shown) == 8 and shown[:6] == ["0", "1", "2", "3", "4", "5"] and shown[7] == "99"
    assert "93 blocks" in shown[6]
    assert len(msgspec.json.decode(whole(cap, address_in(shown[6])))) == 93


def test_contents_of_resources():
    cap = Cap(text=30, binary=5)
    contents = [
        ResourceContents(uri="a:1", text="x" * 100),
        ResourceContents(uri="a:2", blob="eA==eA=="),
    ]
    first, second = cap.apply("s", contents).result
    assert first.uri == "a:1" and whole(cap, address_in(first.text)).startswith("x" * 100)
    assert second.uri == "a:2" and second.mime_type == "text/plain", "the end of what is said of its blob"
    many_contents = [ResourceContents(uri=f"a:{number}", text="") for number in range(300)]
    assert len(cap.apply("s", many_contents).result) == 256
    short = [ResourceContents(uri="a:1", text="x")]
    assert cap.apply("s", short).result is short
    assert cap.apply("s", []).result == []


def test_prompts_keep_the_roles_of_what_is_left():
    cap = Cap(text=30)
    messages = [
        PromptMessage(role="user" if number % 2 else "assistant", content=text("x" * 20)) for number in range(5)
    ]
    capped = cap.apply("s", PromptResult(messages, "described"))
    assert capped.cut and capped.result.description == "described"
    assert [message.role for message in capped.result.messages] == ["assistant", "user", "assistant"]
    assert len(messages) == 5 and messages[0].content.text == "x" * 20, "what came is not changed"


def test_anything_else_is_handed_on():
    assert Cap(text=1).apply("s", {"completion": "x" * 100}).result == {"completion": "x" * 100}


# --- what is kept ---


def test_the_oldest_is_forgotten_and_what_was_read_is_younger():
    cap = Cap(kept=2)
    first, second = (cap.keep("s", "text/plain", text=str(number)) for number in range(2))
    assert first and second
    cap.read(first)
    third = cap.keep("s", "text/plain", text="2")
    assert third and cap.read(first).text == "0" and cap.server_of(second) is None
    with pytest.raises(ResourceNotFound, match="not any more"):
        cap.read(second)


def test_bytes_are_bounded_and_what_is_larger_is_not_kept():
    cap = Cap(text=9, kept_bytes=100)
    uris = [cap.keep("s", "text/plain", text="x" * 40) for _ in range(3)]
    assert [cap.server_of(uri or "") for uri in uris] == [None, "s", "s"]
    assert cap.keep("s", "text/plain", text="é" * 30) is None
    shown = cap.apply("s", CallResult([text("y" * 101)])).result.text
    assert "too large to be kept" in shown and "interlock-result" not in shown


def test_parts_are_read_from_anywhere():
    cap = Cap(text=10)
    uri = cap.keep("s", "text/plain", text="0123456789" * 3)
    assert uri
    assert cap.read(uri + "?start=25").text == "56789"
    assert cap.read(uri, start=3, length=4).text == f"3456\n[… 23 more characters: {uri}?start=7]"
    for odd in ("?start=-5", "?start=x", "?begin=3", "?start=" + "9" * 20):
        assert str(cap.read(uri + odd).text).startswith("0123456789\n")
    assert cap.read(uri + "?start=99999999999").text == ""


def test_a_server_that_is_gone_leaves_nothing():
    cap = Cap()
    mine, other = cap.keep("a", "text/plain", text="x"), cap.keep("b", "text/plain", text="y")
    cap.forget("a")
    assert mine and other and cap.server_of(mine) is None and cap.server_of(other) == "b"
    assert repr(cap) == "Cap(1 results of 1 bytes are kept)"


def test_a_crowd_of_blocks_is_cut_before_it_is_looked_at():
    links = [ResourceLink(uri="a:b", name="n")] * 20_000
    cap = Cap()
    capped = cap.apply("s", CallResult(links))
    assert len(capped.result.content) == 256 and capped.cut and cap.count == 1, "one note, not twenty thousand"
    messages = [PromptMessage(role="assistant", content=TextContent(text=""))] * 20_000
    capped = cap.apply("s", PromptResult(messages))
    assert len(capped.result.messages) == 256 and capped.cut
    assert sum("left out" in message.content.text for message in capped.result.messages) == 1


@pytest.mark.parametrize("name", ["uri", "mime_type"])
def test_an_address_or_a_type_that_never_ends_is_not_handed_on(name):
    place = ResourceContents(**{"uri": "a:b", "text": "", name: "a:" + "b" * 1_000_000})
    for found in (CallResult([EmbeddedResource(resource=place)]), [place]):
        capped = Cap().apply("s", found)
        assert capped.cut and len(msgspec.json.encode(capped.result)) < 5_000
