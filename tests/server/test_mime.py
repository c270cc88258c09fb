"""server/mime.py: what kind of data a file holds."""

import pytest

from interlock.server.mime import guess_type, is_mime_type, is_text_type

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF....WEBPVP8 ", "image/webp"),
        (b"RIFF....WAVEfmt ", "audio/wav"),
        (b"RIFF....AVI ", None),
        (b"\0\0\0\x20ftypavif", "image/avif"),
        (b"\0\0\0\x20ftypM4A ", "audio/mp4"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"ID3\x04", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b" \n<svg xmlns='x'>", "image/svg+xml"),
        (b"%PDF-1.7", "application/pdf"),
        (b"", None),
        (b"hello", None),
    ],
)
def test_the_first_bytes_tell(data, kind):
    assert guess_type(data) == kind


def test_the_bytes_win_over_the_name():
    assert guess_type(PNG, "photo.jpg") == "image/png"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.MD", "text/markdown"),
        ("a.tar.gz", "application/gzip"),
        ("png", None),
        ("a.odd", None),
        (".json", "application/json"),
    ],
)
def test_else_the_name_tells(name, kind):
    assert guess_type(b"some bytes", name) == kind


def test_an_office_file_is_more_than_an_archive():
    assert guess_type(b"PK\x03\x04", "a.docx").endswith("wordprocessingml.document")
    assert guess_type(b"PK\x03\x04", "a.odd") == "application/zip"


@pytest.mark.parametrize(
    "text", ["a/b", "image/svg+xml", "text/plain; charset=utf-8", 'a/b;c="d e"', "x-a/vnd.b.c+json"]
)
def test_mime_types(text):
    assert is_mime_type(text)


@pytest.mark.parametrize(
    "text", ["", "a", "a/", "/b", "a/b/c", "a b/c", "a/b;", "a/b; c", "a/b\n", "é/b", "a/" + "b" * 600]
)
def test_others_are_none(text):
    assert not is_mime_type(text)


@pytest.mark.parametrize("kind", ["text/plain", "TEXT/html; charset=x", "application/json", "application/ld+json"])
def test_types_for_reading(kind):
    assert is_text_type(kind)


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream"])
def test_types_for_programs(kind):
    assert not is_text_type(kind)
