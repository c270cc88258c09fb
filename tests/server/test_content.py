"""server/content.py: helpers for bytes and files, and the check of what authors made."""

import base64
import sys

import msgspec
import pytest
from msgspec import UNSET

from interlock.server.content import MOST_BYTES, Audio, File, Image, Media, block_of
from interlock.wire.errors import LocalError
from interlock.wire.types.common import Annotations, Icon
from interlock.wire.types.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
WAV = b"RIFF\0\0\0\0WAVEfmt "
LINKED = {"uri": "a:b", "name": "n"}


def held(**members):
    return EmbeddedResource(resource=ResourceContents(**{"uri": "a:b", "mime_type": "text/plain", **members}))


# --- helpers ---


@pytest.mark.parametrize("source", [PNG, bytearray(PNG), memoryview(PNG)])
def test_a_picture_of_bytes(source):
    block = Image(source).block
    assert block == ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")


def test_a_sound_of_bytes():
    assert Audio(WAV).block == AudioContent(data=base64.b64encode(WAV).decode(), mime_type="audio/wav")


@pytest.mark.parametrize("as_text", [True, False])
def test_a_picture_of_a_file(tmp_path, as_text):
    path = tmp_path / "red.png"
    path.write_bytes(PNG)
    assert Image(str(path) if as_text else path).block.data == base64.b64encode(PNG).decode()


def test_the_name_tells_where_the_bytes_do_not(tmp_path):
    path = tmp_path / "x.bmp"
    path.write_bytes(b"BM")
    assert Image(path).block.mime_type == "image/bmp"


def test_the_author_knows_better():
    assert Image(b"?", "image/x-own").block.mime_type == "image/x-own"


@pytest.mark.parametrize(("kind", "data"), [(Image, b"?"), (Image, WAV), (Audio, PNG), (Audio, b"")])
def test_data_of_another_kind_is_told(kind, data):
    with pytest.raises(LocalError, match="say mime_type="):
        kind(data)


@pytest.mark.parametrize("mime_type", ["text/html", "image/", "image/a b"])
def test_a_type_that_is_none_is_told(mime_type):
    with pytest.raises(LocalError, match="mime_type"):
        Image(PNG, mime_type)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Image(tmp_path / "none.png")


def test_sizes_are_bounded(tmp_path):
    path = tmp_path / "big.bin"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(LocalError, match=f"big.bin has more than {MOST_BYTES} bytes"):
        File(path)
    assert File(path, most_bytes=MOST_BYTES + 1).block.resource.blob
    with pytest.raises(LocalError, match="the data has more than 3 bytes"):
        File(b"four", name="a", most_bytes=3)


@pytest.mark.skipif(sys.getfilesystemencoding() == "ascii", reason="file names here are ASCII")
def test_a_file_of_text_is_text(tmp_path):
    path = tmp_path / "my notes é.md"
    path.write_text("# é", encoding="utf-8")
    block = File(path).block
    assert block.resource == ResourceContents(
        uri="file:///my%20notes%20%C3%A9.md", mime_type="text/markdown", text="# é"
    )


@pytest.mark.parametrize(
    ("data", "name", "kind", "is_text"),
    [
        (b"hello", "a", "text/plain", True),
        (b"\xff\xfe", "a", "application/octet-stream", False),
        (b"a\0b", "a", "application/octet-stream", False),
        (b"\xff", "a.txt", "text/plain", False),
        (b"{}", "a.json", "application/json", True),
        (b"%PDF-1", "a", "application/pdf", False),
    ],
)
def test_a_file_is_text_where_type_and_bytes_agree(data, name, kind, is_text):
    resource = File(data, name=name).block.resource
    assert resource.mime_type == kind
    assert (resource.text if is_text else base64.b64decode(resource.blob)) == (data.decode() if is_text else data)


def test_a_file_says_no_more_of_its_place_than_its_name(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x")
    assert str(tmp_path) not in repr(msgspec.to_builtins(File(path).block))
    assert File(path, uri="note://1").block.resource.uri == "note://1"


def test_bytes_need_a_name_and_a_uri_is_one():
    with pytest.raises(LocalError, match="name= or uri="):
        File(b"x")
    with pytest.raises(msgspec.ValidationError, match="no URI"):
        File(b"x", uri="no uri")
    with pytest.raises(msgspec.ValidationError, match="MIME"):
        File(b"x", "none", name="a")


@pytest.mark.parametrize("make", [Image, lambda data, **more: File(data, name="a", **more)])
def test_annotations_and_meta(make):
    notes = Annotations(audience=["user"], priority=0.5, last_modified="2025-01-12T15:00:58Z")
    block = make(PNG, annotations=notes, meta={"com.example/a": 1}).block
    assert (block.annotations, block.meta) == (notes, {"com.example/a": 1})
    assert (make(PNG).block.annotations, make(PNG).block.meta) == (UNSET, UNSET)


@pytest.mark.parametrize(
    "notes",
    [Annotations(priority=2), Annotations(priority=-1), Annotations(audience=["me"]), Annotations(last_modified="now")],
)
def test_wrong_annotations_are_told_at_once(notes):
    with pytest.raises(msgspec.ValidationError):
        Image(PNG, annotations=notes)
    with pytest.raises(msgspec.ValidationError):
        block_of(TextContent(text="x", annotations=notes))


def test_reserved_keys_are_told_at_once():
    with pytest.raises(LocalError, match="reserved"):
        Image(PNG, meta={"io.modelcontextprotocol/x": 1})
    with pytest.raises(LocalError, match="reserved"):
        block_of(TextContent(text="x", meta={"io.modelcontextprotocol/x": 1}))


def test_a_helper_shows_itself_shortly():
    assert repr(Image(PNG)) == "Image(ImageContent)"


# --- checking ---


@pytest.mark.parametrize(
    "block",
    [
        TextContent(text=""),
        ImageContent(data="", mime_type="image/png"),
        AudioContent(data="aGk=", mime_type="audio/wav"),
        held(text="x"),
        held(blob="aGk=", mime_type="application/x"),
        ResourceLink(**LINKED),
        ResourceLink(**LINKED, mime_type="a/b", size=3, icons=[Icon(src="https://example.com/i")]),
    ],
)
def test_blocks_by_hand_stay_as_they_are(block):
    assert block_of(block) is block


def test_a_helper_gives_its_block():
    media = Image(PNG)
    assert block_of(media) is media.block and isinstance(media, Media)


@pytest.mark.parametrize(
    "block",
    [
        TextContent(text=7),
        TextContent(text="x", annotations={"priority": "high"}),
        TextContent(text="x", meta=[1]),
        ImageContent(data="not base64", mime_type="image/png"),
        ImageContent(data="aGk", mime_type="image/png"),
        ImageContent(data="é", mime_type="image/png"),
        ImageContent(data=b"raw", mime_type="image/png"),
        ImageContent(data="aGk=", mime_type="png"),
        AudioContent(data="aGk=", mime_type=None),
        held(blob="???"),
        held(text="x", uri="x"),
        held(text="x", mime_type=UNSET),
        held(text=5),
        EmbeddedResource(resource="a:b"),
        ResourceLink(uri="one two", name="n"),
        ResourceLink(uri="a:b", name=None),
        ResourceLink(**LINKED, size="big"),
        ResourceLink(**LINKED, mime_type="x"),
    ],
    ids=repr,
)
def test_blocks_of_the_wrong_shape_are_found_out(block):
    if isinstance(block, ImageContent) and isinstance(block.data, bytes):
        assert block_of(block) is block  # msgspec writes bytes as base64: this one is right on the wire
        return
    with pytest.raises(msgspec.ValidationError):
        block_of(block)


def test_a_link_with_an_icon_that_clients_refuse_is_found_out():
    with pytest.raises(LocalError, match="the icon"):
        block_of(ResourceLink(**LINKED, icons=[Icon(src="javascript:1")]))
