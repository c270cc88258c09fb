"""client/config/parser.py: JSON as editors keep it, files of variables, and messages that show nothing of either."""

import json

import pytest

from interlock.client.config.parser import ConfigError, check_depth, members_in, read_text, variables_in
from support.growth import assert_linear


def test_comments_and_last_commas_are_passed_over():
    text = '{ // a\n "a//b": "/* kept */, }", /* two\n lines */ "c": [1, 2,], "d": {"e": "\\"//",}, }'
    assert members_in(text, "f") == {"a//b": "/* kept */, }", "c": [1, 2], "d": {"e": '"//'}}


def test_a_mistake_is_told_by_its_place_and_not_by_its_text():
    with pytest.raises(ConfigError, match=r"f: no JSON: .* \(line 3, column 9\)") as told:
        members_in('{ // one\n/* two */\n  "key" hunter2 }', "f")
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("text", ["[]", "7", "null", '"x"', "", "{", "{} /* open", '{"a": "open', '{"a": "\\', "{} /"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(ConfigError, match=r"^f: "):
        members_in(text, "f")


def test_two_members_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="'a' is there twice"):
        members_in('{"mcpServers": {"a": {}, "b": {}, "a": {}}}', "f")


@pytest.mark.parametrize("levels", [65, 100_000])
def test_depth_is_bounded(levels):
    with pytest.raises(ConfigError, match="deeper than 64"):
        members_in('{"a":' * levels + "1" + "}" * levels, "f")
    check_depth(json.loads('{"a":' * 60 + "1" + "}" * 60), "f")


def test_a_file_is_read_within_bounds(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"\xef\xbb\xbfhello")
    assert read_text(path, 8, "f") == "hello"
    with pytest.raises(ConfigError, match="larger than 7 bytes"):
        read_text(path, 7, "f")
    path.write_bytes(b"hunter\xff2")
    with pytest.raises(ConfigError, match=r"no UTF-8 \(byte 6\)") as told:
        read_text(path, 100, "f")
    assert "hunter" not in str(told.value)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_text(tmp_path, 100, "f")
    with pytest.raises(ConfigError, match=r"f: .*missing cannot be read"):
        read_text(tmp_path / "missing", 100, "f")


def test_variables():
    text = '# c\n\nA=1\nexport B = two words # c\nC=\'single $X # kept\'\nD="a\\nb\\q\\"" # c\nE=\nF=x#y\nG.H=1'
    assert variables_in(text, "f") == {
        "A": "1",
        "B": "two words",
        "C": "single $X # kept",
        "D": 'a\nb\\q"',
        "E": "",
        "F": "x#y",
        "G.H": "1",
    }


@pytest.mark.parametrize(("text", "told"), [("A=1\nhunter2", "line 2 is not"), ('A="hunter2', "line 1: the quote")])
def test_a_bad_line_is_told_by_its_number(text, told):
    with pytest.raises(ConfigError, match=told) as error:
        variables_in(text, "f")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "piece", ["/*", "/* ", "/**", "*/", "//", '"', '\\"', "\\", "/", ",", ", ", ",\n ", "/* */", '"\\\n']
)
def test_a_configuration_made_to_be_slow_is_not(piece):
    def refuse(text):
        with pytest.raises(ConfigError):
            members_in(text, "f")

    assert_linear(refuse, lambda size: '{"a": "' + piece * (size // len(piece)), 2_000)
    assert_linear(refuse, lambda size: '{"a": 1' + piece * (size // len(piece)), 2_000)


@pytest.mark.parametrize("line", ["A=x{}y", "A='{}", 'A="{}" x', "A{}", "export{}B"])
@pytest.mark.parametrize("piece", [" ", "\\'", '\\"', "\\", "a", "#", " #"])
def test_a_variable_made_to_be_slow_is_not(line, piece):
    def read(text):
        try:
            return variables_in(text, "f")
        except ConfigError as refused:
            return refused

    assert_linear(read, lambda size: line.format(piece * (size // len(piece))), 2_000)
