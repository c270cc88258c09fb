"""server/schema/models.py: paths, and models that are known only by what they can do."""

import pathlib

import msgspec
import pydantic
import pytest

from interlock.server.schema.models import decode_custom, is_model, is_path, is_set_by_class, model_schema


class Complaint(ValueError):
    def errors(self):
        return [{"loc": ("lines", 0, "amount"), "msg": "must be positive"}]


class Order:
    """What pydantic's models look like from outside."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def model_json_schema(cls):
        return {"type": "object", "title": "Order"}

    @classmethod
    def model_validate(cls, value):
        if value == "worse":
            raise ValueError("no order")
        if not isinstance(value, dict):
            raise Complaint("a page\nof text")
        return cls(value)


class Json(Order):
    @classmethod
    def model_validate_json(cls, data):
        return cls(bytes(data))


def test_what_is_what():
    assert is_model(Order) and not is_model(int) and not is_model(Order.model_validate)
    assert is_path(pathlib.Path) and is_path(pathlib.PurePosixPath) and not is_path(str) and not is_path(list[int])
    assert model_schema(Order)["title"] == "Order"


def test_a_model_reads_itself_as_json_where_it_can():
    assert decode_custom(Order, {"a": 1}).data == {"a": 1}
    assert decode_custom(Json, {"a": [1]}).data == b'{"a":[1]}'


def test_its_complaint_is_one_line_with_the_place():
    with pytest.raises(ValueError, match=r"^must be positive \(in lines\[0\]\.amount\)$"):
        decode_custom(Order, 5)
    with pytest.raises(ValueError, match=r"^no order$"):
        decode_custom(Order, "worse")


def test_all_complaints_are_told_up_to_a_handful():
    model = pydantic.create_model("Six", **dict.fromkeys("abcdef", (int, ...)))
    with pytest.raises(ValueError) as caught:
        decode_custom(model, {"a": "x", "f": 1})
    told = str(caught.value)
    assert [f"(in {name})" in told for name in "abcdef"] == [True, True, True, True, False, False]
    assert told.endswith("; and 1 more")


def test_a_path_is_a_text_without_nulls():
    assert decode_custom(pathlib.Path, "a/b") == pathlib.Path("a/b")
    assert type(decode_custom(pathlib.PureWindowsPath, "a")) is pathlib.PureWindowsPath
    for value in (1, None, ["a"], "a\0b"):
        with pytest.raises(ValueError, match="Expected"):
            decode_custom(pathlib.Path, value)


def test_msgspec_finds_them_wherever_they_stand():
    decoder = msgspec.json.Decoder(dict[str, list[Order | None]], dec_hook=decode_custom)
    (first, second) = decoder.decode(b'{"a": [{"b": 1}, null]}')["a"]
    assert first.data == {"b": 1} and second is None
    with pytest.raises(msgspec.ValidationError, match=r"must be positive .* at `\$\[\.\.\.\]\[0\]`"):
        decoder.decode(b'{"a": [5]}')


def test_anything_else_is_nobody_s():
    assert decode_custom(object, 5) == 5
    with pytest.raises(NotImplementedError):
        decode_custom(complex, 5)


def test_what_a_constructor_does_not_take_is_known():
    import dataclasses

    import attrs

    @dataclasses.dataclass
    class Data:
        a: int
        b: int = dataclasses.field(default=1, init=False)

    @attrs.define
    class Attrs:
        a: int
        b: int = attrs.field(default=1, init=False)

    for kind in (Data, Attrs):
        assert [is_set_by_class(kind, name) for name in "abc"] == [False, True, False]
    assert not is_set_by_class(int, "real")
