"""host/catalogue/bm25.py: which tools a sentence is about."""

import pytest
from hypothesis import given

from interlock.host.catalogue.bm25 import Ranking, words_of
from interlock.host.catalogue.catalogue import Entry
from interlock.wire.types.tools import Tool
from support.properties import TEXT, many


def entry(name, description="", server="s", **properties):
    tool = Tool(name=name, description=description, input_schema={"properties": properties})
    return Entry(f"{server}__{name}", server, tool)


TOOLS = [
    entry("send_mail", "Send a message to somebody", "mail", to={}, subject={}),
    entry("searchMail", "Find messages that hold a word", "mail"),
    entry("create_issue", "Open a new ticket in the tracker", "tracker", title={}),
    entry("weather", "Forecast for a city", "sky", city={}),
]


def best(text):
    scores = Ranking(TOOLS).scores(text)
    return max(scores, key=scores.__getitem__) if scores else None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("send an email message", "mail__send_mail"),
        ("search my mail", "mail__searchMail"),
        ("please open tickets", "tracker__create_issue"),
        ("what is the forecast in my city", "sky__weather"),
        ("nothing of the kind: 42", None),
        ("", None),
    ],
)
def test_the_best_is_the_one_it_is_about(text, name):
    assert best(text) == name


def test_saying_it_a_hundred_times_does_not_win():
    honest = entry("pay_invoice", "Pay an invoice of a supplier")
    shouting = entry("x", "pay invoice " * 300)
    scores = Ranking([honest, shouting, *TOOLS]).scores("pay the invoice")
    assert scores["s__pay_invoice"] > scores["s__x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("readHTTPPages", ["read", "http", "page"]),
        ("get_user-by_id2", ["get", "user", "by", "id", "2"]),
        ("class glass", ["class", "glass"]),
        ("日本語", ["日本", "本語"]),
        ("Straße", ["stra", "ß", "e"]),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@given(TEXT)
@many(60)
def test_any_text_is_taken_apart(text):
    assert len(words_of(text, 5)) <= 5
    assert all(word == word.lower() or not word.isascii() for word in words_of(text))


def test_an_empty_catalogue_finds_nothing():
    assert not Ranking([]).scores("mail")
