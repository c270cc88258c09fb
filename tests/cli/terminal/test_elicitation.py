"""cli/terminal/elicitation.py: what a server asks, answered by a person, or not."""

import pytest

from interlock.cli.terminal.elicitation import Answerer, choices_of, read_field
from support.command_line import Person

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "description": "as in the \x1b[2Jpassport", "minLength": 2},
        "weeks": {"type": "integer", "default": 2},
        "nice": {"type": "boolean"},
    },
    "required": ["name", "nice"],
}


async def answered(form, *lines):
    person = Person(*lines)
    return await Answerer(person).form({"message": "Who\x1b?", "requestedSchema": form}), person.heard


async def test_a_form_is_asked_field_by_field_and_proposals_may_stand():
    answer, heard = await answered(FORM, "Ada", "", "y")
    assert answer == {"action": "accept", "content": {"name": "Ada", "nice": True}}
    assert "The server asks you:\n  | Who\\x1b?\n" in heard and "  | as in the \\x1b[2Jpassport" in heard
    assert 'answer for "Your name": ' in heard and 'answer for "weeks" [2]: ' in heard
    assert 'answer for "nice" (y or n): ' in heard


@pytest.mark.parametrize(
    ("lines", "action"),
    [(["/decline"], "decline"), (["Ada", "/cancel"], "cancel"), (["Ada"], "cancel"), (["A"] * 5, "cancel")],
)
async def test_a_person_may_always_say_no_or_nothing(lines, action):
    answer, _ = await answered(FORM, *lines)
    assert answer == {"action": action}


async def test_what_does_not_fit_is_asked_again():
    answer, heard = await answered(FORM, "A", "", "Ada", "x", "3", "perhaps", "no")
    assert answer["content"] == {"name": "Ada", "weeks": 3, "nice": False}
    assert "minLength" in heard and "give a whole number" in heard and "answer y or n" in heard


async def test_a_field_that_is_not_required_may_be_left_out():
    answer, heard = await answered({"properties": {"a": {"type": "string"}}}, "")
    assert answer == {"action": "accept", "content": {}} and 'answer for "a" (may be left out): ' in heard


@pytest.mark.parametrize(("line", "action"), [("y", "accept"), ("no", "decline"), ("", "cancel"), ("?", "cancel")])
async def test_a_form_without_fields_is_a_question_of_yes_and_no(line, action):
    assert (await answered({"type": "object", "properties": {}}, line))[0] == {"action": action}


async def test_a_form_that_nobody_would_fill_in_is_declined():
    form = {"properties": {str(number): {"type": "string"} for number in range(101)}}
    answer, heard = await answered(form)
    assert answer == {"action": "decline"} and "101 fields" in heard


@pytest.mark.parametrize("form", [None, [], {"properties": 3}, {"properties": {}, "required": 1}])
async def test_a_malformed_form_is_survived(form):
    assert (await answered(form, "n"))[0] == {"action": "decline"}


CHOICES = [
    {"type": "string", "enum": ["a", "b"], "enumNames": ["Anna"]},
    {"type": "string", "oneOf": [{"const": "a", "title": "Anna"}, {"const": "b", "title": "b"}]},
    {"type": "array", "items": {"anyOf": [{"const": "a", "title": "Anna"}, {"const": "b"}]}},
]


@pytest.mark.parametrize("field", CHOICES)
def test_choices_are_the_same_in_every_spelling(field):
    assert choices_of(field) == [("a", "Anna"), ("b", "b")]
    for typed in ("a", "Anna", "1"):
        assert read_field(field, typed) == (["a"] if field["type"] == "array" else "a")
    with pytest.raises(ValueError, match="among the choices"):
        read_field(field, "3")


async def test_choices_are_shown_with_their_numbers():
    answer, heard = await answered({"properties": {"who": CHOICES[2]}}, "1, b")
    assert answer["content"] == {"who": ["a", "b"]}
    assert "  | 1. Anna\n  | 2. b\n" in heard


@pytest.mark.parametrize("kind", ["string", "boolean"])
async def test_every_line_with_a_servers_words_is_quoted_or_indented(kind):
    forged = '[y] yes, once: "\nMay this be done? [y] yes, once, [n] no: '
    about = {"type": kind, "title": forged, "description": forged, "default": forged}
    _, heard = await answered({"properties": {"a": {**about, "enum": [forged, *map(str, range(200))]}}}, "/cancel")
    lines = heard.splitlines()
    prompt = lines[-1]
    assert prompt.startswith('answer for "(y) yes, once: \' May this be " ') and len(prompt) < 80
    assert prompt.endswith(" [(y) yes, once: ']: ")
    assert "  | … (101 more lines)" in lines
    assert all(line.startswith((" ", "(", "The server", "Do not", "answer for")) for line in lines if line)


def test_a_value_that_looks_like_a_number_counts_before_the_number():
    assert read_field({"enum": ["2", "1"]}, "1") == "1"


@pytest.mark.parametrize(
    ("kind", "typed", "value"),
    [
        ("integer", " -3 ", -3),
        ("number", "1.5", 1.5),
        ("number", "1", 1.0),
        ("boolean", "YES", True),
        ("boolean", "0", False),
        ("string", " a ", " a "),
        (None, "a", "a"),
    ],
)
def test_what_is_typed_is_read_by_the_type(kind, typed, value):
    assert read_field({"type": kind}, typed) == value


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        ("integer", "1.5"),
        ("integer", "9" * 31),
        ("integer", "-"),
        ("number", "nan"),
        ("number", "x"),
        ("number", "inf"),
    ],
)
def test_what_is_no_number_is_none(kind, typed):
    with pytest.raises(ValueError, match="number"):
        read_field({"type": kind}, typed)


# --- pages ---


async def visited(url, *lines, can=True):
    person, opened, room = Person(*lines), [], []

    async def browse(url):
        opened.append(url)
        return can

    answerer = Answerer(person, browse, lambda: room.append(1))
    answer = await answerer.page({"message": "Log in", "url": url})
    assert room == [1], "what was drawn made room"
    return answer, opened, person.heard


async def test_a_page_is_shown_whole_and_opened_only_when_agreed_to():
    url = "https://example.com/" + "a" * 3000 + "?x=1"
    answer, opened, heard = await visited(url, "y")
    assert (answer, opened) == ({"action": "accept"}, [url])
    assert url in heard.replace("\n  | ", "") and "at the host: example.com\n" in heard


@pytest.mark.parametrize(("line", "action"), [("n", "decline"), ("", "cancel"), ("yup", "cancel"), ("yes!", "cancel")])
async def test_a_page_is_not_opened_unasked(line, action):
    answer, opened, _ = await visited("https://example.com/", line)
    assert (answer, opened) == ({"action": action}, [])


async def test_without_a_browser_the_person_opens_it():
    answer, _, heard = await visited("https://example.com/", "y", can=False)
    assert answer == {"action": "accept"} and "open the address above yourself" in heard


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "javascript:alert(1)", "", "https://", "https://[x", "https://a.example/\x1b[2J"),
        "https://bank.example@evil.example/",
    ],
)
async def test_what_is_no_web_page_is_declined_unasked(url):
    answer, opened, heard = await visited(url, "y")
    assert (answer, opened) == ({"action": "decline"}, []) and "\x1b" not in heard


async def test_a_host_in_foreign_letters_is_shown_as_it_is_looked_up():
    _, _, heard = await visited("https://exаmple.com/", "n")
    assert "at the host: xn--exmple-4nf.com\n" in heard and "careful: its name is written in letters" in heard
