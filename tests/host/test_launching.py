"""host/launching.py: all that decides what runs is shown and bound, and no secret is."""

import os
import sys

import pytest

from interlock import Client, Command, Server, read_config
from interlock.client.config import ConfigError
from interlock.host.launching import Bound, launch_of, target_in
from interlock.wire.errors import LocalError


def entry(environ=None, **members):
    return read_config({"mcpServers": {"notes": members}}, environ=environ or {})["notes"]


def launch(*words, **options):
    return launch_of("notes", Command.of(words, **options))


def test_everything_that_decides_what_runs_is_bound():
    base = launch("python", "a.py", env={"KEY": "1"}, cwd="/tmp")
    others = [
        launch("python", "b.py", env={"KEY": "1"}, cwd="/tmp"),
        launch("python", "a.py", "", env={"KEY": "1"}, cwd="/tmp"),
        launch("python a.py", env={"KEY": "1"}, cwd="/tmp"),
        launch("python", "a.py", env={"KEY": "1"}, cwd="/"),
        launch("python", "a.py", env={"KEY": "1", "MORE": "1"}, cwd="/tmp"),
        launch("python", "a.py", env={"KEY": "1"}, cwd="/tmp", env_policy="inherit"),
        launch("python", "a.py", env={"KEY": "1", "LD_PRELOAD": "/x.so"}, cwd="/tmp"),
        launch("python", "a.py", env={"KEY": "1", "LD_PRELOAD": "/y.so"}, cwd="/tmp"),
        launch_of("other", Command.of(["python", "a.py"], env={"KEY": "1"}, cwd="/tmp")),
        launch_of("notes", "https://a.example/mcp"),
        launch_of("notes", "https://a.example/mcp?x=1"),
        launch_of("notes", "https://a.example/mcp", {"X-Key": "1"}),
    ]
    assert len({each.digest for each in [base, *others]}) == len(others) + 1


def test_values_of_secrets_are_neither_bound_nor_shown():
    one, other = (launch("python", env={"API_TOKEN": value}) for value in ("first-value", "second-value"))
    assert one.digest == other.digest
    assert "API_TOKEN" in one.text and "first-value" not in one.text + str(one.arguments)
    one, other = (launch_of("n", "https://a.example", {"Authorization": value}) for value in ("Bearer a", "Bearer b"))
    assert one.digest == other.digest and '"authorization"' in one.text and "Bearer" not in one.text


def test_the_folder_is_the_one_it_would_run_in(tmp_path, monkeypatch):
    before = launch("python")
    monkeypatch.chdir(tmp_path)
    assert launch("python").cwd == str(tmp_path) and launch("python").digest != before.digest


def test_the_program_is_the_file_that_is_found_now(tmp_path):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert launch("tool", env={"PATH": str(tmp_path)}).program == str(program)
    assert launch("./tool", cwd=str(tmp_path)).program == str(program)
    assert launch("tool", env={"PATH": "/nowhere"}).program == ""
    assert "program: not found" in launch("tool", env={"PATH": "/nowhere"}).text


def test_the_text_shows_all_of_it_word_by_word_and_escaped():
    hidden = "x" * 5000 + "; rm -rf ~"
    text = launch("sh", "-c", hidden, "a b", "\x1b[2K\r", "\u202eexe", "p\u0430y", cwd="/tmp").text
    assert f'[2] "{hidden}"' in text and '[3] "a b"' in text
    assert "\x1b" not in text and "\r" not in text and "\u202e" not in text
    assert r"p\u0430y" in text  # what passes for an ASCII word is written out


def test_deciding_variables_are_shown_with_their_values():
    assert '  LD_PRELOAD = "/x.so"' in launch("a", env={"LD_PRELOAD": "/x.so", "KEY": "v"}).text


def test_secrets_in_arguments_are_hidden_and_bound():
    given = {"command": "python", "args": ["--key", "${env:MY_KEY}"]}
    one, other = (launch_of("n", entry({"MY_KEY": value}, **given)) for value in ("abcdefgh", "12345678"))
    assert "abcdefgh" not in one.text + str(one.arguments) and "not shown" in one.text
    assert one.digest != other.digest


def test_a_secret_in_a_url_is_bound_and_not_shown():
    one, other = (launch_of("n", f"https://a.example/mcp?api_key={value}") for value in ("abcdefgh", "12345678"))
    assert one.digest != other.digest and "abcdefgh" not in one.text + str(one.arguments)


@pytest.mark.parametrize("given", [Server("s"), lambda: None])
def test_what_lives_in_this_process_is_not_launched(given):
    assert launch_of("notes", target_in(given)) is None


def test_what_people_give_is_one_of_a_few_things(tmp_path):
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "python"}}}')
    assert target_in(["a", "b"]) == Command.of(["a", "b"])
    assert target_in({"command": "python"}).kind == target_in(file).kind == "stdio"
    assert target_in("https://a.example") == "https://a.example"
    for wrong in ([], ["a", 1]):
        with pytest.raises(LocalError, match="no command"):
            target_in(wrong)


def test_what_cannot_be_looked_up_says_so():
    with pytest.raises(ConfigError, match="MISSING"):
        launch_of("notes", entry(command="python", args=["${env:MISSING}"]))


def test_an_entry_that_changed_after_the_leave_is_not_started():
    environ = {"WHICH": "server-one"}
    given = entry(environ, command=sys.executable, args=["${env:WHICH}"])
    bound = Bound(given, launch_of("notes", given))
    assert bound.command().args == (sys.executable, "server-one") and bound.key == given.key
    environ["WHICH"] = "server-two"
    with pytest.raises(LocalError, match=r"not what was approved \(command changed\)") as caught:
        Client(bound)
    assert "asked again" in caught.value.hint and "server-two" not in str(caught.value)


def test_a_rotated_secret_is_used_without_being_asked_about():
    environ = {"SECRET": "one-secret"}
    given = entry(environ, url="https://a.example/mcp", headers={"X-Key": "${env:SECRET}"})
    bound = Bound(given, launch_of("notes", given, {"X-Own": "1"}), {"X-Own": "1"})
    environ["SECRET"] = "two-secret"
    assert bound.address() == ("https://a.example/mcp", {"X-Key": "two-secret"})


def test_an_address_that_changed_is_not_called():
    environ = {"HOST": "a.example"}
    given = entry(environ, url="https://${HOST}/mcp")
    bound = Bound(given, launch_of("notes", given))
    environ["HOST"] = "b.example"
    with pytest.raises(LocalError, match="url changed"):
        bound.address()


def test_a_folder_may_be_relative():
    assert launch("python", cwd="x").cwd == os.path.join(os.getcwd(), "x")
