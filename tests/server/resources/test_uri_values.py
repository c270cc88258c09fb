"""server/resources/uri_values.py: what a value of a URI may be, raw and decoded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.resources.uri_values import (
    any_text,
    free_text,
    is_relative_path,
    pairs,
    path_segment,
    segment,
)
from support.properties import many

CLIMBS = [
    ".",
    "..",
    "%2e%2e",
    ".%2E",
    "%2F",
    "a%2fb",
    "..%2Fetc",
    "%5C",
    "..%5cx",
    "%00",
    "a%00",
    "%0a",
    "%7F",
    "%C2%85",
]


@pytest.mark.parametrize(
    ("raw", "value"), [("a", "a"), ("a%20b", "a b"), ("...", "..."), ("a:b", "a:b"), ("%252e", "%2e")]
)
def test_a_segment_is_decoded_once(raw, value):
    assert segment(raw) == value


@pytest.mark.parametrize("raw", [*CLIMBS, "", "/", "a/b", "?", "#", "&", "a b", "é", "%", "%4", "%FF", "[", "\\"])
def test_what_is_no_segment(raw):
    assert segment(raw) is None and path_segment(raw) is None


@pytest.mark.parametrize(
    "raw", ["C:", "c:x", "%43%3A", "%252e", "%252E", "a%252Fb", "%255c", "%2500", "%2525", "..%20", "...", "%20"]
)
def test_what_a_file_must_not_be_called(raw):
    assert segment(raw) is not None and path_segment(raw) is None


@pytest.mark.parametrize("raw", ["a", "a.b", "..a", "100%25", "ab:c", "~", "-rf", "%C3%A4", "a%20b"])
def test_what_a_file_may_be_called(raw):
    assert path_segment(raw) == segment(raw) is not None


@pytest.mark.parametrize(
    ("raw", "value"), [("", ""), ("a/b?c", "a/b?c"), ("..%2F", "../"), ("%00", None), ("a#", None)]
)
def test_free_text_is_anything_but_nul(raw, value):
    assert free_text(raw) == value


@pytest.mark.parametrize(
    ("raw", "value"), [("/../x", "/../x"), ("%00", "\0"), ("", None), ("%FF", None), ("a?b", None)]
)
def test_any_text_is_whatever_can_be_decoded(raw, value):
    assert any_text(raw) == value


@pytest.mark.parametrize("value", ["a", "a/b", "a b/c.txt", "..a/b.."])
def test_a_relative_path(value):
    assert is_relative_path(value)


@pytest.mark.parametrize(
    "value", ["", "/", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\\b", "C:/a", "a/C:x", "a\0", "%2e"]
)
def test_no_relative_path(value):
    assert not is_relative_path(value)


@many(300)
@given(st.text("ab./\\:%2eC~ ", max_size=12))
def test_a_relative_path_stays_below_its_folder_on_every_system(value):
    from ntpath import join as windows_join
    from ntpath import normpath as windows_normpath
    from posixpath import join, normpath

    if is_relative_path(value):
        assert normpath(join("/srv/data", value)).startswith("/srv/data/")
        assert windows_normpath(windows_join("C:\\data", value)).startswith("C:\\data\\")


@pytest.mark.parametrize(
    ("raw", "mark", "found"),
    [
        ("a=1&b=2", "&", {"a": "1", "b": "2"}),
        ("l=1&l=2&a=3", "&", {"l": ["1", "2"], "a": "3"}),
        ("a", "&", None),
        ("a;b=2", ";", {"a": "", "b": "2"}),
        ("a=1&a=2", "&", None),
        ("x=1", "&", None),
        ("", "&", None),
        ("a=%00", "&", None),
        ("l=1&l=%00", "&", None),
    ],
)
def test_pairs_of_declared_names(raw, mark, found):
    assert pairs(raw, mark, {"a", "b", "l"}, {"l"}) == found
