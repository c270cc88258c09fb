"""cli/tool_arguments.py: what was typed, as the schema wants it."""

import io
import sys
from types import SimpleNamespace

import pytest

from interlock.cli.errors import USAGE, Failure
from interlock.cli.tool_arguments import literal, read_arguments, read_texts, signature_of

SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "text": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "name": {"type": ["string", "null"]},
        "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        "point": {"$ref": "#/$defs/Point"},
        "colour": {"enum": ["red", "1"]},
        "any": {},
        "odd": True,
    },
    "$defs": {"Point": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], {}),
        (["count=-3"], {"count": -3}),
        (["ratio=1", "deep=yes"], {"ratio": 1, "deep": True}),
        (["ratio=1e3", "deep=off"], {"ratio": 1000.0, "deep": False}),
        (["text=12"], {"text": "12"}),
        (["text="], {"text": ""}),
        (["text=a=b"], {"text": "a=b"}),
        (["tags=a", "tags=b,c"], {"tags": ["a", "b,c"]}),
        (['tags=["a"]', "tags=b"], {"tags": ["a", "b"]}),
        (["sizes=1", "sizes=2"], {"sizes": [1, 2]}),
        (["size=3"], {"size": 3}),
        (["size=null", "name=null"], {"size": None, "name": None}),
        (["name=x"], {"name": "x"}),
        (["either=x"], {"either": "x"}),
        (['either=["x"]'], {"either": ["x"]}),
        (['point={"x": 1}'], {"point": {"x": 1}}),
        (["colour=1"], {"colour": "1"}),
        (["any=1", "odd=x"], {"any": 1, "odd": "x"}),
        (["new=[1]"], {"new": [1]}),
        (["text:=5", 'count:="a"'], {"text": 5, "count": "a"}),
        (['{"text": "a", "x": 1}', "count=1"], {"text": "a", "x": 1, "count": 1}),
    ],
)
def test_words_become_what_the_schema_wants(words, found):
    assert read_arguments(words, SCHEMA) == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["count=x"], "count='x': this is no integer"),
        (["count=1.5"], "no integer"),
        (["count=true"], "no integer"),
        (["count=NaN", "ratio=NaN"], "no integer"),
        (["ratio=NaN"], "no number"),
        (["deep=maybe"], "no boolean"),
        (["sizes=x"], "no integer"),
        (["size=x"], "no null or integer"),
        (["point=[1]"], "no object"),
        (["count=1", "count=2"], "count is given twice"),
        (["count"], "'count' is no argument"),
        (["=1"], "is no argument"),
        ([":=1"], "is no argument"),
        (["x:={"], "x: this is no JSON"),
        (["{"], "this is no JSON"),
        (["x:=" + "[" * 100_000], "this is no JSON"),
        (["@/nowhere/file"], "@/nowhere/file: No such file"),
        (["text=@/nowhere/file"], "hint: a text that begins with @"),
    ],
)
def test_what_does_not_fit_is_said(words, told):
    with pytest.raises(Failure) as caught:
        read_arguments(words, SCHEMA)
    assert caught.value.code == USAGE and told in caught.value.told()


def test_files_give_texts_and_whole_objects(tmp_path, monkeypatch):
    letter, all_of_it, bytes_ = tmp_path / "letter", tmp_path / "all.json", tmp_path / "bytes"
    letter.write_text("Dear ✓", encoding="utf-8")
    all_of_it.write_text('{"count": 1}')
    bytes_.write_bytes(b"\xff")
    assert read_arguments([f"text=@{letter}", f"@{all_of_it}"], SCHEMA) == {"text": "Dear ✓", "count": 1}
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"count": 2}')))
    assert read_arguments(["@-"], SCHEMA) == {"count": 2}
    for words, told in ((f"@{letter}", "no JSON"), (f"text=@{bytes_}", "no text in UTF-8")):
        with pytest.raises(Failure, match=told):
            read_arguments([words], SCHEMA)
    all_of_it.write_text("[1]")
    with pytest.raises(Failure, match="arguments are a JSON object"):
        read_arguments([f"@{all_of_it}"], SCHEMA)


def test_a_file_without_end_is_not_read_to_its_end():
    with pytest.raises(Failure, match="more than 16 MiB"):
        read_texts(["text=@/dev/zero"])


def test_what_is_missing_is_said_before_anything_is_sent():
    schema = {"properties": {"a": {"type": "integer"}, "b": {"default": "x"}}, "required": ["a"]}
    with pytest.raises(Failure) as caught:
        read_arguments(["b=1"], schema)
    assert caught.value.told() == 'a must be given\n  hint: it takes: a: integer, b: any = "x"'
    with pytest.raises(Failure) as caught:  # a server's word is never a terminal's
        read_arguments([], {"required": ["a\x1b[2K"]})
    assert caught.value.message == r"a\x1b[2K must be given"
    with pytest.raises(Failure, match="there is no argument 'c'"):
        read_arguments(["c=1"], {**schema, "required": [], "additionalProperties": False})
    with pytest.raises(Failure, match="no argument 'c'") as caught:
        read_arguments(["c=1"], {"additionalProperties": False})
    assert "it takes: nothing" in caught.value.told()


def test_arguments_of_prompts_are_texts(tmp_path):
    file = tmp_path / "file"
    file.write_text("in it")
    assert read_texts(["a=1", f"b=@{file}", '{"c": "x", "d": [1]}']) == {"a": "1", "b": "in it", "c": "x", "d": "[1]"}


@pytest.mark.parametrize("schema", [{}, {"properties": []}, {"properties": {"a": 1}, "required": 3}, {"required": [1]}])
def test_a_schema_of_any_shape_is_survived(schema):
    assert read_arguments(["a=1"], schema) == {"a": 1}


def test_a_signature_says_what_may_be_left_out():
    assert signature_of(SCHEMA).startswith("count?: integer, ratio?: number, deep?: boolean")
    told = signature_of({"properties": {"a\x1b": {"type": "string"}}, "required": ["a\x1b"]})
    assert told == "a\\x1b: string"


def test_two_signs_are_a_text_and_what_is_in_a_file_is_one(tmp_path):
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.write_text("secret")
    outer.write_text(f"@{inner}")
    words = ["text=@@ann", f"tags=@{outer}", "tags=@@b", "tags=@"]
    schema = {"properties": {"text": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}}
    assert read_arguments(words, schema) == {"text": "@ann", "tags": [f"@{inner}", "@b", "@"]}
    assert read_texts(["a=@@ann", f"b=@{outer}", "c=@"]) == {"a": "@ann", "b": f"@{inner}", "c": "@"}
    for text in ("@ann", "@@ann", "@", "ann", ""):
        assert read_texts([f"a={literal(text)}"]) == {"a": text}
