"""wire/lazy_regex.py: compiled late, and then as good as any."""

import re

import pytest

from interlock.wire.lazy_regex import pattern


def test_a_pattern_is_compiled_with_its_first_use(monkeypatch):
    made = []
    compile = re.compile
    monkeypatch.setattr(re, "compile", lambda *said: made.append(said) or compile(*said))
    late = pattern(r"(a+)(b)?", re.IGNORECASE)
    assert made == []
    assert late.fullmatch("AAb")[1] == "AA"
    assert late.search("xab").span() == (1, 3)
    assert late.sub(r"<\1>", "xab") == "x<a>"
    assert [found[0] for found in late.finditer("a aab")] == ["a", "aab"]
    assert made == [(r"(a+)(b)?", re.IGNORECASE)]


def test_bytes_are_searched_by_bytes():
    assert pattern(rb"[0-9]+").findall(b"1 22") == [b"1", b"22"]


def test_a_mistake_shows_with_the_first_use():
    late = pattern("(")
    with pytest.raises(re.error):
        late.match("x")


def test_what_a_pattern_has_not_it_has_not():
    with pytest.raises(AttributeError):
        pattern("x").nonsense
