"""cli/install/json_edit.py: one member changes, every other byte stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.install import json_edit
from interlock.cli.install.json_edit import HIDDEN, masked, remove_member, set_member, take_back, value_at
from interlock.cli.install.json_parser import places
from interlock.client.config.parser import ConfigError, members_in
from support.properties import JSON, JSON_OBJECTS, TEXT, many
from support.settings_files import Hand, is_kept, shuffled

ENTRY = {"command": "/usr/bin/python3", "args": ["run", "/home/ö/server.py"], "env": {"TOKEN": "s3cret"}}
PATH = ("mcpServers", "mine")


SERVERS = st.dictionaries(TEXT.filter(lambda name: name != "mine"), JSON, max_size=3)
OTHERS = JSON_OBJECTS.map(lambda members: {name: each for name, each in members.items() if name != "mcpServers"})
SEEDS = st.integers(0, 2**32)


@many(70)
@given(OTHERS, st.none() | SERVERS, SEEDS)
def test_an_entry_is_added_and_every_other_byte_stays(others, servers, seed):
    text = shuffled(seed, others if servers is None else {**others, "mcpServers": servers})
    after = set_member(text, PATH, ENTRY, "x")
    assert members_in(after, "x") == {**others, "mcpServers": {**(servers or {}), "mine": ENTRY}}
    assert is_kept(text, after)


@many(70)
@given(OTHERS, SERVERS, SEEDS)
def test_an_entry_is_replaced_and_every_other_byte_stays(others, servers, seed):
    text = shuffled(seed, {**others, "mcpServers": {**servers, "mine": {"old": [1]}}})
    after = set_member(text, PATH, ENTRY, "x")
    assert outside(text) == outside(after)
    assert value_at(after, PATH, "x") == ENTRY
    assert set_member(after, PATH, ENTRY, "x") == after, "the same twice changes nothing"


def outside(text):
    """What stands before our entry and what behind it."""
    node = places(text, "x")
    for name in PATH:
        [node] = [member.value for member in node.members if member.name == name]
    return text[: node.start], text[node.end :]


@many(70)
@given(OTHERS, SERVERS, SEEDS)
def test_what_was_added_can_be_taken_out_again(others, servers, seed):
    text = shuffled(seed, {**others, "mcpServers": servers})
    back = remove_member(set_member(text, PATH, ENTRY, "x"), PATH, "x")
    assert members_in(back, "x") == members_in(text, "x")
    assert not servers or back == text


@many(70)
@given(OTHERS, st.none() | SERVERS, SEEDS)
def test_what_was_added_can_be_taken_back(others, servers, seed):
    text = shuffled(seed, others if servers is None else {**others, "mcpServers": servers})
    back = take_back(set_member(text, PATH, ENTRY, "x"), PATH, "x")
    assert {"mcpServers": {}, **members_in(back, "x")} == {"mcpServers": {}, **members_in(text, "x")}
    assert not servers or back == text


@many(70)
@given(OTHERS, SERVERS, SEEDS)
def test_an_entry_anywhere_can_be_taken_out(others, servers, seed):
    text = Hand(seed).file({**others, "mcpServers": {"mine": ENTRY, **servers}})
    after = remove_member(text, PATH, "x")
    assert members_in(after, "x") == {**others, "mcpServers": servers}


# --- layouts, as they are seen ---

PRETTY = '{\n  "mcpServers": {\n    "a": {}\n  }\n}\n'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "mine": 1\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "mine": 1\n  }\n}'),
        ("{\n}\n", '{\n  "mcpServers": {\n    "mine": 1\n  }\n}\n'),
        (PRETTY, PRETTY.replace("{}", '{},\n    "mine": 1')),
        (PRETTY.replace("\n", "\r\n"), PRETTY.replace("{}", '{},\n    "mine": 1').replace("\n", "\r\n")),
        (PRETTY.replace("  ", "\t"), PRETTY.replace("{}", '{},\n    "mine": 1').replace("  ", "\t")),
        (PRETTY.replace("{}", "{} // mine"), PRETTY.replace("{}", '{}, // mine\n    "mine": 1')),
        (PRETTY.replace("{}", "{}, // last"), PRETTY.replace("{}", '{}, // last\n    "mine": 1,')),
        ('{"mcpServers":{"a":{}}}', '{"mcpServers":{"a":{}, "mine": 1}}'),
        ('{"mcpServers":{}}', '{"mcpServers":{"mine": 1}}'),
        ('{"a": 1}', '{"a": 1, "mcpServers": {"mine": 1}}'),
        (
            '{\n    "mcpServers": {\n        // here\n    }\n}',
            '{\n    "mcpServers": {\n        // here\n        "mine": 1\n    }\n}',
        ),
        ('{\n  "mcpServers": {}\n}', '{\n  "mcpServers": {\n    "mine": 1\n  }\n}'),
    ],
)
def test_an_entry_is_written_as_the_file_is(text, after):
    assert set_member(text, PATH, 1, "x") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"mcpServers":{"mine": 1, "b": 2}}', '{"mcpServers":{ "b": 2}}'),
        (
            '{\n "mcpServers": {\n  "a": 1,\n  "mine": 1,\n  "b": 2\n }\n}',
            '{\n "mcpServers": {\n  "a": 1,\n  "b": 2\n }\n}',
        ),
        ('{"mcpServers": {\n  "a": 1, // a\n  "mine": 1 }}', '{"mcpServers": {\n  "a": 1 // a\n   }}'),
        ('{"mcpServers": {\n  // our own\n  "mine": 1\n}}', '{"mcpServers": {\n  // our own\n}}'),
    ],
)
def test_an_entry_is_taken_out_with_its_line(text, after):
    assert remove_member(text, PATH, "x") == after


ZED = '// Zed\n{\n  "theme": "dark", // mine\n  "lists": [1, 2]\n}\n'


@pytest.mark.parametrize(
    "text",
    [
        ZED,
        ZED.replace("]", "],"),
        ZED.replace("\n", "\r\n"),
        ZED.replace('"lists"', '"mcpServers": {},\n  "lists"'),
        ZED.replace('"lists": [1, 2]', '"mcpServers": {}, /* none yet */'),
        ZED.replace('"lists"', '"mcpServers": {\n    // none yet\n  },\n  "lists"'),
        '{"a": 1}',
        '{\n  "mcpServers": {}\n}\n',
        '{"mcpServers": {}}',
    ],
)
def test_a_list_is_left_as_it_was_found(text):
    assert take_back(set_member(text, PATH, ENTRY, "x"), PATH, "x") == text


@pytest.mark.parametrize("text", ["", "{}", "{}\n"])
def test_a_file_of_nothing_else_keeps_its_list(text):
    back = take_back(set_member(text, PATH, ENTRY, "x"), PATH, "x")
    assert members_in(back, "x") == {"mcpServers": {}} and "{}" in back


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": 1, "mcpServers": {"mine":1}}', '{"a": 1, "mcpServers": {}}'),
        ('{\n  "mcpServers": {\n    "mine": 1\n  },\n  "a": 1\n}', '{\n  "mcpServers": {},\n  "a": 1\n}'),
        ('{\n  "a": 1,\n  "mcpServers": {\n  "mine": 1 // x\n}\n}', '{\n  "a": 1,\n  "mcpServers": { // x\n}\n}'),
    ],
)
def test_a_list_that_somebody_else_wrote_stays(text, after):
    assert take_back(text, PATH, "x") == after


def test_a_guess_that_cannot_be_made_is_no_reason_to_fail(monkeypatch):
    def refuse(*_):
        raise ConfigError("not safely")

    text = set_member(ZED, PATH, ENTRY, "x")
    monkeypatch.setattr(json_edit, "_without_object", refuse)
    assert members_in(take_back(text, PATH, "x"), "x")["mcpServers"] == {}


@pytest.mark.parametrize("text", ["{", "[]", "// only a comment", '{"mcpServers": []}', '{"mcpServers": null}', "{,}"])
def test_a_file_that_is_not_understood_is_left_alone(text):
    with pytest.raises(ConfigError, match=r"^settings"):
        set_member(text, PATH, 1, "settings")


@pytest.mark.parametrize("text", ["{}", '{"mcpServers": {}}', '{"mcpServers": {"a": 1}}', '{"mcpServers": 1}'])
def test_what_is_not_there_cannot_be_taken_out(text):
    with pytest.raises(ConfigError, match=r"there is no mcpServers\.mine|must be an object"):
        remove_member(text, PATH, "x")


def test_a_change_that_would_mean_something_else_is_not_made(monkeypatch):
    monkeypatch.setattr(json_edit, "_apply", lambda text, edits: '{"mcpServers": {}}')
    with pytest.raises(ConfigError, match="could not be changed safely"):
        set_member(PRETTY, PATH, 1, "x")
    monkeypatch.setattr(json_edit, "_apply", lambda text, edits: "{")
    with pytest.raises(ConfigError, match="could not be changed safely"):
        remove_member(PRETTY, ("mcpServers", "a"), "x")


# --- what is shown ---


def test_values_of_others_and_secrets_of_ours_are_not_shown():
    text = json.dumps({"theme": "dark", "n": 12345, "mcpServers": {"a": {"args": ["--key", "theirs"]}, "mine": ENTRY}})
    shown = masked(text, PATH, "x")
    assert members_in(shown, "x")["mcpServers"]["mine"] == {**ENTRY, "env": {"TOKEN": "…"}}
    for secret in ("dark", "12345", "theirs", "s3cret"):
        assert secret not in shown
    assert '"theme": ' + HIDDEN in shown
    assert masked("", PATH, "x") == ""


@pytest.mark.parametrize(("text", "found"), [("", None), ("{}", None), ('{"mcpServers": 1}', None), (PRETTY, None)])
def test_what_is_not_there_has_no_value(text, found):
    assert value_at(text, PATH, "x") is found
