"""wire/json/duplicate_names.py: a name twice in one object, at any depth and in any spelling."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.json.duplicate_names import DuplicateName, check_unique_names
from support.properties import JSON, TEXT, many


@many()
@given(JSON)
def test_what_has_no_name_twice_passes(value):
    check_unique_names(json.dumps(value).encode())


@many()
@given(st.dictionaries(TEXT, JSON, min_size=1, max_size=4), st.data(), st.booleans())
def test_a_name_twice_is_found_wherever_it_stands(members, data, nested):
    name = data.draw(st.sampled_from(sorted(members)))
    written = [f"{json.dumps(each)}:{json.dumps(value)}" for each, value in members.items()]
    text = "{" + ",".join([*written, f"{json.dumps(name, ensure_ascii=False)}:null"]) + "}"
    with pytest.raises(DuplicateName) as caught:
        check_unique_names(f'[{{"a":{text}}}]'.encode() if nested else text.encode())
    assert caught.value.name == name


@pytest.mark.parametrize("text", [r'{"a":1,"\u0061":2}', '{"a":[{"b":1,"b":1}]}', '{"a":{},"b":{},"a":{}}'])
def test_another_spelling_is_the_same_name(text):
    with pytest.raises(DuplicateName, match="occurs twice in one object: send it once"):
        check_unique_names(text.encode())


def test_the_same_name_in_two_objects_is_not_twice():
    check_unique_names(b'{"a":{"a":1},"b":[{"a":1},{"a":2}]}')


def test_numbers_are_not_converted():
    check_unique_names(b"[" + b"1" * 10_000 + b",1e999,-5e-324]")


def test_a_long_name_is_cut_and_escaped():
    name = "\N{RIGHT-TO-LEFT OVERRIDE}" + "x" * 1000
    with pytest.raises(DuplicateName) as caught:
        check_unique_names(json.dumps({name: 1})[:-1].encode() + b"," + json.dumps({name: 2})[1:].encode())
    assert len(str(caught.value)) < 150 and str(caught.value).isascii()
