"""What services refuse, made to fit."""

from base64 import b64encode

import pytest

from interlock.host.models import sanitize
from interlock.host.models.model import ModelTool
from interlock.host.models.sanitize import Names, fit_tool, joined, picture_type, sound_type


def text(words, role="user"):
    return {"role": role, "content": {"type": "text", "text": words}}


def picture(data, said="image/png"):
    return {"type": "image", "data": b64encode(data).decode(), "mimeType": said}


def test_roles_come_in_turns_and_the_user_first():
    given = [text("a", "assistant"), text("b", "assistant"), text(" "), text("c"), text("d")]
    found = joined(given)
    assert [(each["role"], len(each["content"])) for each in found] == [("user", 1), ("assistant", 2), ("user", 2)]
    assert joined(given) == found  # what is given stays as it was
    assert [each["role"] for each in joined([text("")])] == ["user"]


@pytest.mark.parametrize(
    "data, kind",
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"\xff\xd8\xff\xe0....", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF....WEBPVP8", "image/webp"),
        (b"RIFF....WAVE", None),
        (b"<svg/>", None),
        (b"II*\x00", None),
        (b"", None),
    ],
)
def test_a_picture_is_what_its_bytes_are(data, kind):
    assert picture_type(picture(data, "image/tiff")) == kind


def test_pictures_that_are_no_base64_or_too_large(monkeypatch):
    assert picture_type({"data": "iVBORw0KGgo=\n!", "mimeType": "image/png"}) is None
    monkeypatch.setattr(sanitize, "_LARGEST", 10)
    assert picture_type(picture(b"\x89PNG\r\n\x1a\n....")) is None


@pytest.mark.parametrize(
    "said, form", [("audio/x-wav", "wav"), ("Audio/MPEG; rate=1", "mp3"), ("audio/ogg", None), ("video/mp3", None)]
)
def test_sounds(said, form):
    assert sound_type({"data": "", "mimeType": said}) == form


def test_names_go_out_and_come_back():
    given = ["a.b", "a_b", "a/b", "x" * 80, ""]
    names = Names([ModelTool(name=name, input_schema={}) for name in given])
    shown = [names.out(name) for name in given]
    assert shown == ["a_b_2", "a_b", "a_b_3", "x" * 64, "unknown"]
    assert [names.back(name) for name in shown] == given
    assert (names.out("made up"), names.back("other")) == ("made_up", "other")


def test_a_schema_that_fits_is_left_alone():
    schema = {"type": "object", "properties": {"a": {"oneOf": [{}]}}, "required": ["a"], "$defs": {}}
    tool = ModelTool(name="t", description="T.", input_schema=schema)
    assert fit_tool(tool, Names([tool]), plain_keys=True) == tool


def test_a_choice_at_the_top_is_put_into_words():
    branches = [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}}, 5]
    schema = {"type": "object", "anyOf": branches, "properties": {"a": {"type": "integer"}}, "oneOf": 5}
    tool = ModelTool(name="t", description="T.", input_schema=schema)
    fit = fit_tool(tool, Names([tool]))
    assert fit.input_schema == {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}
    assert fit.description.startswith("T.\nThe arguments must also fit: {") and '"required":["a"]' in fit.description
