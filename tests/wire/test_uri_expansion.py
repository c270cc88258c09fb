"""wire/uri_expansion.py: every kind of expression of RFC 6570, by the examples of its own chapters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.errors import LocalError
from interlock.wire.uri_expansion import expand, expressions_in
from support.properties import many

VALUES = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "empty_keys": {},
    "none": [],
    "undef": None,
}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,undef}", "?1024"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+base}index", "http://example.com/home/index"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        ("X{#var}", "X#value"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("{#empty}", "#"),
        ("{#undef}", ""),
        ("X{.dom*}", "X.example.com"),
        ("X{.list*}", "X.red.green.blue"),
        ("X{.empty_keys}", "X"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?keys}", "?keys=semi,%3B,dot,.,comma,%2C"),
        ("{?undef,none}", ""),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{&var:3}", "&var=val"),
        ("Grüße/%41", "Gr%C3%BC%C3%9Fe/%41"),
        ("no variables", "no%20variables"),
    ],
)
def test_the_examples_of_the_standard(template, uri):
    assert expand(template, VALUES) == uri


def test_what_is_encoded_already_passes_where_reserved_characters_do():
    assert expand("{+a}{#a}{a}", {"a": "%41%zz"}) == "%41%25zz#%41%25zz%2541%25zz"


def test_numbers_are_written():
    assert expand("note://{id}", {"id": 7}) == "note://7"


@pytest.mark.parametrize(
    "template", ["{", "}", "a{b", "a}b", "{}", "{a b}", "{a:0}", "{a:99999}", "{a,}", "{=a}", "{a**}"]
)
def test_what_is_no_template_is_refused(template):
    with pytest.raises(LocalError, match="template"):
        expand(template, {"a": "1", "b": "2"})


def test_a_template_without_end_is_refused():
    with pytest.raises(LocalError, match="characters"):
        expand("{a}" * 10_000, {})


def test_the_parts_of_a_template():
    parts = list(expressions_in("a{b,c*}d{?e:3}"))
    assert [literal for literal, _ in parts] == ["a", "d", ""]
    assert [(each.name, each.many) for each in parts[0][1].variables] == [("b", False), ("c", True)]
    assert (parts[1][1].operator, parts[1][1].variables[0].most) == ("?", 3)


@many(100)
@given(st.text(max_size=30), st.text(max_size=30))
def test_whatever_a_server_lists_is_a_uri_or_refused(template, value):
    try:
        found = expand(template, {"a": value})
    except LocalError:
        return
    assert found.isascii() and " " not in found


@many(100)
@given(st.text(max_size=30, alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_value_stays_in_its_place(value):
    assert set(expand("{a}", {"a": value})) <= set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%"
    )
