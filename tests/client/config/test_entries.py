"""client/config/entries.py: servers from the files that people already have."""

import json
import logging
import sys
from pathlib import Path

import pytest

from interlock import Client, ConfigError, read_config
from interlock.client.config.entries import Config, NoSection, ServerEntry, entry_in
from support.children import command_of, write_server
from support.http_peer import HttpPeer, server

SECRET = "hunter2hunter2"


def entry(members, **options):
    return read_config({"mcpServers": {"notes": members}}, **options)["notes"]


def written(folder, members, name="mcp.json"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(members))
    return path


# --- shapes ---


def test_claude_desktop(tmp_path):
    members = {"command": "uvx", "args": ["notes", "--all"], "env": {"A": "1"}}
    config = read_config(written(tmp_path, {"mcpServers": {"notes": members}, "theme": "dark"}))
    command = config["notes"].command()
    assert (command.args, command.env, command.env_policy, command.cwd) == (
        ("uvx", "notes", "--all"),
        {"A": "1"},
        "minimal",
        None,
    )
    assert [*config] == ["notes"] and len(config) == 1 and "notes" in config
    assert config.unknown == {"theme": "dark"}


def test_cursor_with_a_file_of_variables(tmp_path):
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    members = {"type": "stdio", "command": "${workspaceFolder}/x", "envFile": ".env", "env": {"A": "own"}}
    config = read_config(written(tmp_path, {"mcpServers": {"x": members}}, ".cursor/mcp.json"))
    command = config["x"].command()
    assert command.args == (f"{tmp_path}/x",)
    assert command.env == {"A": "own", "B": "file"}
    assert command.cwd == str(tmp_path)


def test_vs_code_with_inputs(tmp_path):
    text = """{
      // what the user is asked for
      "inputs": [
        {"type": "promptString", "id": "key", "description": "Key", "password": true},
        {"type": "pickString", "id": "size", "options": ["s", {"label": "M", "value": "m"}]},
        {"type": "command", "id": "run", "command": "some.command"},
      ],
      "servers": {"far": {"type": "http", "url": "https://example.com/mcp",
                          "headers": {"Authorization": "Bearer ${input:key}", "X-Size": "${input:size}"}},
                  "run": {"command": "x", "args": ["${input:run}"]}},
    }"""
    path = tmp_path / "mcp.json"
    path.write_text(text)
    config = read_config(path, inputs={"key": SECRET, "size": "m", "run": "x"})
    url, headers = config["far"].address()
    assert (url, headers) == ("https://example.com/mcp", {"Authorization": f"Bearer {SECRET}", "X-Size": "m"})
    with pytest.raises(ConfigError, match=r"server 'run', args\[0\]: .*not among the inputs"):
        config["run"].command()


def test_vs_code_settings():
    config = read_config({"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}, "extra": 1}})
    assert [*config] == ["a"] and config.unknown == {"editor.fontSize": 12, "extra": 1}


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"command": "x"}, "stdio"),
        ({"url": "http://x"}, "http"),
        ({"type": "sse", "url": "http://x"}, "sse"),
        ({"type": "streamable-http", "url": "http://x"}, "http"),
        ({"type": "streamableHttp", "url": "http://x"}, "http"),
    ],
)
def test_kinds(members, kind):
    assert entry(members).kind == kind


def test_variables_may_be_numbers_and_null_means_not_there():
    assert entry({"command": "x", "env": {"PORT": 80, "GONE": None, "A": ""}}).command().env == {"PORT": "80", "A": ""}


def test_what_is_looked_up_is_looked_up_late():
    environ = {"TOKEN": "one"}
    found = entry({"command": "x", "env": {"T": "${env:TOKEN}"}}, environ=environ)
    assert found.command().env == {"T": "one"}
    environ["TOKEN"] = "two"
    assert found.command().env == {"T": "two"}


def test_the_policy_of_variables_is_the_caller_s():
    assert entry({"command": "x"}, env_policy="explicit").command().env_policy == "explicit"


# --- mistakes ---


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ("x", "must be an object"),
        ({}, "command: must be a text"),
        ({"command": ""}, "command: must be a text"),
        ({"command": ["x"]}, "command: must be a text"),
        ({"command": "x", "args": "y"}, "args: must be a list"),
        ({"command": "x", "args": [1]}, "args: must be a list"),
        ({"command": "x", "env": []}, "env: must be an object"),
        ({"command": "x", "env": {"A": True}}, "env.A: must be a text"),
        ({"command": "x", "cwd": 1}, "cwd: must be a text"),
        ({"command": "x", "url": "http://x"}, "(url: does not belong|command: does not belong)"),
        ({"command": "x", "headers": {}}, "headers: does not belong"),
        ({"url": "http://x", "envFile": "y"}, "envFile: does not belong"),
        ({"type": "http", "command": "x"}, "command: does not belong"),
        ({"type": "stdio"}, "command: must be"),
        ({"type": "ftp", "url": "x"}, "'ftp' is none of"),
        ({"type": 7, "url": "x"}, "'7' is none of"),
    ],
)
def test_a_mistake_names_server_and_member(members, told):
    with pytest.raises(ConfigError, match=f"configuration: server 'notes'.*{told}"):
        entry(members)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({}, "has neither mcpServers nor servers"),
        ({"servers": {}, "mcpServers": {}}, "has both mcpServers and servers"),
        ({"mcpServers": []}, "mcpServers: must be an object"),
        ({"servers": {}, "inputs": {}}, "inputs: "),
        ({"servers": {}, "inputs": [{"type": "promptString"}]}, "inputs: "),
        ({"mcpServers": {str(number): {} for number in range(1001)}}, "at most 1000"),
    ],
)
def test_a_file_of_another_shape_is_refused(members, told):
    with pytest.raises(ConfigError, match=told):
        read_config(members)


@pytest.mark.parametrize(("members", "kind"), [({"theme": "dark"}, NoSection), ({"mcpServers": 1}, ConfigError)])
def test_settings_of_something_else_are_told_from_a_broken_list(members, kind):
    with pytest.raises(ConfigError) as raised:
        read_config(members)
    assert type(raised.value) is kind


def test_a_broken_server_leaves_the_others_alone():
    config = read_config({"mcpServers": {"bad": {}, "good": {"command": "x"}}})
    assert isinstance(config["good"], ServerEntry) and config["good"] is config["good"]
    with pytest.raises(ConfigError):
        config["bad"]
    with pytest.raises(ConfigError, match="no server 'none'; there are: bad, good"):
        config["none"]
    with pytest.raises(ConfigError, match="which server"):
        config.only()


def test_a_disabled_server_is_not_started():
    with pytest.raises(ConfigError, match="disabled"):
        entry({"command": "x", "disabled": True}).command()
    with pytest.raises(ConfigError, match="disabled"):
        Client({"url": "http://x", "disabled": True})


def test_what_is_unknown_is_kept_and_reported_and_not_acted_on(caplog):
    with caplog.at_level(logging.INFO, "interlock.client"):
        found = entry({"command": "x", "headersHelper": "rm -r /", "autoApprove": ["a"]})
    assert found.unknown == {"headersHelper": "rm -r /", "autoApprove": ["a"]}
    assert "headersHelper, autoApprove" in caplog.text and "rm -r" not in caplog.text


# --- secrets ---


def test_no_repr_shows_a_secret(tmp_path):
    (tmp_path / "t").write_text(SECRET)
    members = {
        "command": "x",
        "args": ["--token", "${env:T}", f"--file=${{file:{tmp_path}/t}}"],
        "env": {"A": "${env:T}", "API_KEY": "literal-secret"},
    }
    config = read_config({"mcpServers": {"notes": members}}, environ={"T": "fromtheenvironment"})
    command = config["notes"].command()
    assert command.args[1:] == ("--token", "fromtheenvironment", f"--file={SECRET}")
    shown = repr(config) + repr(config["notes"]) + repr(command) + str(command) + f"{config['notes']}"
    for secret in (SECRET, "fromtheenvironment", "literal-secret"):
        assert secret not in shown
        assert secret in command.hide
    assert command.hidden(f"key {SECRET}!") == "key [redacted]!"


def test_no_message_shows_a_secret():
    found = entry({"url": "http://user:${env:T}@example.com/", "headers": {"X": "${env:T}\n"}}, environ={"T": SECRET})
    with pytest.raises(ConfigError, match="server 'notes'") as told:
        Client(found)
    assert SECRET not in str(told.value)
    with pytest.raises(ConfigError, match=r"args\[0\]: holds a NUL") as told:
        entry({"command": "x", "args": ["${env:T}"]}, environ={"T": SECRET + "\0"}).command()
    assert SECRET not in str(told.value)


async def test_the_stderr_of_a_server_is_told_without_them(tmp_path, caplog):
    path = write_server(
        tmp_path, "import sys\nsys.stderr.write('key ' + os.environ['KEY'] + '\\n')\nsys.exit(3)  # no loop"
    )
    members = {"command": sys.executable, "args": [str(path)], "env": {"KEY": "${env:T}"}}
    with caplog.at_level(logging.DEBUG), pytest.raises(Exception, match=r"key \[redacted\]"):
        async with Client(entry(members, environ={"T": SECRET})):
            pass
    assert SECRET not in caplog.text


async def test_junk_on_its_stdout_is_told_without_them(tmp_path, caplog):
    path = write_server(tmp_path, "os.write(1, b'key ' + os.environb[b'KEY'] + b'\\n')\nserve()")
    members = {"command": sys.executable, "args": [str(path)], "env": {"KEY": "${env:T}"}}
    with caplog.at_level(logging.DEBUG):
        async with Client(entry(members, environ={"T": SECRET}), revision="2025-11-25"):
            pass
    assert "no message: 'key [redacted]'" in caplog.text and SECRET not in caplog.text


# --- clients of them ---


async def test_a_client_of_an_entry_a_file_and_a_mapping(tmp_path):
    command = command_of(write_server(tmp_path, ""))
    members = {"command": command.args[0], "args": [*command.args[1:]]}
    config = read_config(written(tmp_path, {"mcpServers": {"notes": members}}))
    for target in (config["notes"], Path(config.file), members, config):
        async with Client(target, revision="2025-11-25", keepalive=None) as client:
            assert (await client.call_tool("echo", {"text": "; exit $HOME"})).text == "; exit $HOME"


async def test_a_client_of_a_url_sends_the_headers_looked_up_for_this_connection():
    environ = {"T": "one"}
    async with HttpPeer(server(tools_list={"tools": [], "ttlMs": 0, "cacheScope": "private"})) as peer:
        found = entry({"url": peer.url, "headers": {"X-Token": "${env:T}", "X-A": "1"}}, environ=environ)
        client = Client(found, headers={"X-A": "2"})
        environ["T"] = "two"
        async with client:
            await client.list_tools()
        assert {(r.header("X-Token"), r.header("X-A")) for r in peer.requests} == {("two", "2")}


def test_headers_belong_to_urls():
    with pytest.raises(Exception, match="headers= belongs"):
        Client(entry({"command": "x"}), headers={"A": "b"})


def test_one_target_of_a_file_with_several_must_be_named():
    config = read_config({"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}})
    assert isinstance(config, Config)
    with pytest.raises(ConfigError, match="there are: a, b"):
        entry_in(config)
