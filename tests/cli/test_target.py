"""cli/target.py: which server is meant, and when that is not clear."""

import json
import os
import sys
from pathlib import Path

import pytest

from interlock.cli import target
from interlock.cli.errors import USAGE, Failure
from interlock.cli.options import Words
from interlock.cli.target import aim_of, config_files, headers_of
from interlock.client.config.entries import ConfigError
from interlock.transport.stdio.child_process import Command


@pytest.fixture(autouse=True)
def an_empty_machine(tmp_path, monkeypatch):
    """No configuration but those a test writes."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    for moved in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(moved, raising=False)


def aim(word, **options):
    return aim_of(Words([], options), [word])


def why_not(word, **options):
    with pytest.raises(Failure) as caught:
        aim(word, **options)
    assert caught.value.code == USAGE
    return caught.value.told()


def config(path, **servers):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def test_a_url_is_a_url_and_its_query_is_not_shown():
    found = aim("https://example.com/mcp?key=secret")
    assert (found.kind, found.target, found.is_remote) == ("url", "https://example.com/mcp?key=secret", True)
    assert "secret" not in found.name


def test_a_file_is_run_by_this_python_from_wherever_we_are(tmp_path):
    Path("server.py").write_text("")
    found = aim("server.py:notes", env=["A=1"], cwd="/")
    full = os.path.join(os.getcwd(), "server.py:notes")
    assert found.target == Command(
        args=(sys.executable, "-P", "-m", "interlock", "run", full),
        env={"A": "1"},
        env_policy="inherit",
        cwd="/",
    )
    assert (found.kind, found.name, found.is_remote) == ("file", "server.py:notes", False)


def test_a_command_sees_what_it_needs_and_what_it_is_given(monkeypatch):
    monkeypatch.setenv("MINE", "value")
    rest = ["call", "x"]
    found = aim_of(Words(rest, {"env": ["MINE", "B=c=d"]}, ["npx", "server", "--json"]), rest)
    assert found.target == Command(args=("npx", "server", "--json"), env={"MINE": "value", "B": "c=d"})
    assert (rest, found.name) == (["call", "x"], "npx server --json"), "nothing else is taken"
    with pytest.raises(Failure, match="no such variable"):
        aim_of(Words([], {"env": ["NOT_THERE"]}, ["x"]), [])


def test_a_configuration_with_one_server_is_that_server(tmp_path):
    path = config(tmp_path / "one.json", notes={"command": "notes"})
    assert aim(path).target.name == aim(f"{path}:notes").target.name == "notes"
    assert aim(path).name == f"notes of {path}" and not aim(path).is_remote
    assert "no server 'x'" in why_not(f"{path}:x")


def test_of_several_one_must_be_named(tmp_path):
    path = config(tmp_path / "two.json", a={"command": "a"}, b={"url": "https://b.example"})
    assert f"has 2 servers\n  hint: choose one: {path}:a, {path}:b" in why_not(path)
    assert aim(f"{path}:b").is_remote
    assert "has 0 servers" in why_not(config(tmp_path / "none.json"))


def test_a_broken_configuration_is_said_with_its_place(tmp_path):
    (tmp_path / "bad.json").write_text("{")
    assert "bad.json" in why_not(str(tmp_path / "bad.json"))


@pytest.mark.parametrize("place", [".mcp.json", "mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"])
def test_a_name_in_the_files_of_this_folder_must_be_approved(place, capsys):
    file = config(Path.cwd() / place, notes={"command": "sh"})
    told = why_not("notes")
    assert "is not approved" in told and "no terminal" in told and f"name the file: {file}:notes" in told
    assert capsys.readouterr().err == f"notes: from {file}\n"
    assert aim(f"{place}:notes").target.name == "notes", "a path is explicit"
    assert aim_of(Words([], {}), ["notes"], asks=False).target.name == "notes", "a host asks by itself"


@pytest.mark.parametrize("place", [".claude.json", ".cursor/mcp.json", ".codeium/windsurf/mcp_config.json"])
def test_a_name_is_found_in_the_files_of_the_user(place, tmp_path, capsys):
    file = config(tmp_path / place, notes={"command": "notes"})
    assert aim("notes").target.name == "notes"
    assert capsys.readouterr().err == f"notes: from {file}\n"


def test_a_file_of_the_user_is_theirs_also_where_they_are_at_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config(tmp_path / ".cursor" / "mcp.json", notes={"command": "notes"})
    assert aim("notes").target.name == "notes"


def test_a_bare_name_is_no_file_of_this_folder():
    Path("notes").write_text("raise SystemExit('it ran')")
    assert "did you mean the file ./notes?" in why_not("notes") and "no configuration" in why_not("notes:server")
    assert aim("./notes").kind == "file"


@pytest.mark.parametrize("member", ["headers", "envFile", "link"])
def test_files_outside_of_the_folder_are_not_read_for_it(member, tmp_path):
    (tmp_path / "key").write_text("A=secret")
    Path("own").write_text("B=mine")
    Path("link").symlink_to(tmp_path / "key")
    outside, inside = {
        "headers": (
            {"url": "https://a.example", "headers": {"X": "${file:../key}"}},
            {"headers": {"X": "${file:own}"}},
        ),
        "envFile": ({"command": "a", "envFile": "../key"}, {"envFile": "own"}),
        "link": ({"command": "a", "env": {"X": "${file:link}"}}, {"env": {"X": "${file:./own}"}}),
    }[member]
    config(Path(".mcp.json"), evil=outside, good={**outside, **inside})
    look_up = "address" if member == "headers" else "command"
    for place in ("", ".mcp.json:"):
        found, good = (aim_of(Words([], {}), [place + name], asks=False).target for name in ("evil", "good"))
        with pytest.raises(
            ConfigError, match=r"is outside of .*: a configuration reads files below its own folder only"
        ):
            getattr(found, look_up)()
        assert getattr(good, look_up)()
        allowed = {"allow-folder": [str(tmp_path)]}
        assert getattr(aim_of(Words([], allowed), [f"{place}evil"], asks=False).target, look_up)()


def test_files_of_the_user_read_what_they_name_however_they_are_named(tmp_path):
    (tmp_path / "key").write_text("secret")
    entry = {"command": "a", "env": {"K": f"${{file:{tmp_path / 'key'}}}"}}
    path = config(tmp_path / ".config" / "Claude" / "claude_desktop_config.json", notes=entry)
    for word in ("notes", f"{path}:notes", "../.config/Claude/claude_desktop_config.json:notes"):
        assert aim(word).target.command().env == {"K": "secret"}


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".config"), ("darwin", "Library/Application Support"), ("win32", "AppData/Roaming")],
)
def test_hosts_keep_their_files_where_the_platform_says(platform, folder, monkeypatch):
    monkeypatch.setattr(target.sys, "platform", platform)
    monkeypatch.delenv("APPDATA", raising=False)
    found = list(config_files(home=Path("/home/ada"), here=Path("/here")))
    assert Path("/home/ada") / folder / "Claude" / "claude_desktop_config.json" in found


def test_two_files_with_the_same_server_agree_and_with_another_do_not(tmp_path):
    config(Path(".mcp.json"), notes={"command": "notes"})
    other = config(tmp_path / ".claude.json", notes={"command": "notes"})
    assert aim("notes").target.file == other, "the user's own needs no approval"
    config(tmp_path / ".claude.json", notes={"command": "evil"})
    told = why_not("notes")
    assert "2 files name different servers 'notes'" in told and f"{other}:notes" in told


def test_a_name_that_is_nowhere_is_said_with_those_that_are(tmp_path):
    assert "TARGET is a URL" in why_not("notes")
    config(Path(".mcp.json"), notes={"command": "notes"})
    (tmp_path / ".claude.json").write_text('{"theme": "dark"}')
    Path("mcp.json").write_text("{")
    told = why_not("nots")
    assert "no configuration has a server 'nots'" in told and "there are: notes" in told
    assert "mcp.json" in told and ".claude.json" not in told, "a file that cannot be read is said"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("nowhere.py", "TARGET is a URL"),
        ("no/where", "TARGET is a URL"),
        ("x.json", "TARGET"),
        ("localhost:8000/mcp", "did you mean http://localhost:8000/mcp?"),
        ("example.com:80/mcp", "did you mean http://example.com:80/mcp?"),
    ],
)
def test_a_file_that_is_not_there_is_said(word, hint):
    assert f"there is no file {word!r}\n  hint: {hint}" in why_not(word)


def test_no_target_at_all_is_said():
    with pytest.raises(Failure, match="which server"):
        aim_of(Words([], {}), [])


@pytest.mark.parametrize("option", ["env", "cwd"])
def test_what_belongs_to_a_process_is_not_for_others(option):
    told = why_not("https://example.com/mcp", **{option: ["A=1"] if option == "env" else "/"})
    assert f"--{option} belongs to a command or a file" in told


def test_what_a_file_asks_the_user_needs_a_terminal(tmp_path):
    (tmp_path / "asks.json").write_text(
        json.dumps({"servers": {"a": {"command": "${input:x}"}}, "inputs": [{"id": "x", "type": "promptString"}]})
    )
    found = aim(str(tmp_path / "asks.json"))
    with pytest.raises(Exception, match="no terminal to ask on"):
        found.target.command()


class Typed:
    def isatty(self):
        return True

    def readline(self):
        return "typed\n"

    def write(self, text):
        Typed.shown = text

    def flush(self):
        pass


def test_what_a_file_asks_the_user_is_asked_on_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Typed())
    monkeypatch.setattr(sys, "stderr", Typed())
    monkeypatch.setattr("getpass.getpass", lambda shown: f"hidden {shown}")
    asked = target.Input(id="x", description="Your \x1b key")
    assert target._asked(asked) == "typed" and Typed.shown == "value of the input x (Your \\x1b key): "
    assert target._asked(target.Input(id="x", password=True)) == "hidden value of the input x: "


def test_headers_are_names_and_values_and_tokens_come_from_variables():
    words = Words([], {"header": ["X-A: b: c", "D:e"], "bearer": "TOKEN"})
    found = headers_of(words, {"TOKEN": "t"})
    assert found == {"X-A": "b: c", "D": "e", "Authorization": "Bearer t"}
    assert headers_of(Words([], {}), {}) is None
    for options, told in (({"header": ["x"]}, "'Name: value'"), ({"bearer": "TOKEN"}, "no such variable")):
        with pytest.raises(Failure, match=told):
            headers_of(Words([], options), {"TOKEN": ""})
