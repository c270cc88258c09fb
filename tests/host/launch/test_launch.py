"""host/launch/launch.py: all that decides what runs is shown and bound, and no secret is."""

import os
import sys

import pytest

from interlock import Client, Command, Server, read_config
from interlock.client.config.entries import ConfigError
from interlock.host.launch import launch as launching
from interlock.host.launch.launch import Bound, bound, launch_of, target_in
from interlock.host.launch.warnings import dangers
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
    assert "abcdefgh" not in one.text + str(one.arguments) and "word [2] from ${env:MY_KEY}" in one.text
    assert one.digest != other.digest  # by its place it may be a script


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
    with pytest.raises(LocalError, match=r"not what was approved \(file \S+\$\{env:WHICH\} changed\)") as caught:
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
    with pytest.raises(LocalError, match="host changed"):
        bound.address()


def test_a_folder_may_be_relative():
    assert launch("python", cwd="x").cwd == os.path.join(os.getcwd(), "x")


def test_where_values_come_from_is_shown_and_bound(tmp_path):
    environ = {"A": "secret-a", "B": "secret-b", "C": "x"}
    (tmp_path / "key").write_text("secret-f")
    (tmp_path / ".env").write_text("OTHER=secret-o\nKEY=unused")
    file = str(tmp_path / ".env")
    members = {"command": "server", "args": ["-x", "${C}"], "envFile": file, "env": {"KEY": "${env:A}"}}
    one = launch_of("n", entry(environ, **members))
    assert one.sources == {"variable KEY": "${env:A}", "variable OTHER": f"envFile {file}", "word [2]": "${C}"}
    assert "  variable KEY from ${env:A}\n" in one.text and one.arguments["sources"] == one.sources
    assert launch_of("n", entry({**environ, "A": "rotated"}, **members)).digest == one.digest
    others = [
        launch_of("n", entry(environ, **{**members, "env": {"KEY": value}}))
        for value in ("${env:B}", "literal", f"${{file:{tmp_path / 'key'}}}", "${A} and ${B}")
    ]
    assert len({each.digest for each in [one, *others]}) == 5
    assert others[1].sources["variable KEY"] == "the configuration" and "literal" not in others[1].text
    assert "secret" not in "".join(each.text for each in others)


def test_where_headers_and_addresses_come_from_is_shown_and_bound():
    environ = {"A": "secret-a", "B": "secret-b", "PLACE": "x"}
    members = {"url": "https://a.example/${PLACE}", "headers": {"X-Key": "Bearer ${env:A}"}}
    one = launch_of("n", entry(environ, **members), {"X-Own": "mine"})
    assert one.sources == {"header x-key": "${env:A}", "header x-own": "this program", "url": "${PLACE}"}
    assert "  header x-key from ${env:A}\n" in one.text and "secret" not in one.text + str(one.arguments)
    members["headers"] = {"X-Key": "Bearer ${env:B}"}
    assert launch_of("n", entry(environ, **members), {"X-Own": "mine"}).digest != one.digest
    assert launch_of("n", entry(environ, **members), {"X-Key": "mine"}).sources["header x-key"] == "this program"


def asked_for(asked, **members):
    inputs = [{"id": "key", "type": "promptString"}]

    def ask(declared):
        asked.append(declared.id)
        return "typed-secret"

    given = {"servers": {"notes": members}, "inputs": inputs}
    return read_config(given, inputs=ask, environ={"TOKEN": "tok", "PLACE": "here.example", "WORD": "long-secret"})[
        "notes"
    ]


@pytest.mark.parametrize("url", ["https://a.example/${env:TOKEN}/mcp?q=${env:WORD}", "https://${PLACE}/${input:key}"])
def test_a_url_is_shown_with_its_references(url):
    one = launch_of("n", asked_for([], url=url))
    assert one.url == one.arguments["url"] == url and f'  "{url}"\n' in one.text
    assert not any(value in one.text + repr(one) for value in ("/tok/", "here.example", "long-secret", "typed"))


def test_words_are_shown_with_their_references(tmp_path):
    (tmp_path / "key").write_text("from-a-file")
    words = ["-x", "a ${env:TOKEN}", "${env:WORD}", f"${{file:{tmp_path}/key}}", "${input:key}"]
    one = launch_of("n", asked_for([], command=sys.executable, args=words))
    assert one.command == (sys.executable, *words) and one.arguments["command"] == [sys.executable, *words]
    assert not any(value in one.text + repr(one) for value in ('tok"', "long-secret", "from-a-file", "typed"))
    assert any("content of files" in each for each in dangers(one.arguments))


def test_leave_holds_for_rotated_values_and_not_for_another_host_program_or_file(tmp_path):
    key, tool = tmp_path / "key", tmp_path / "tool"
    key.write_text("one")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    (tmp_path / "two" / "tool").symlink_to(tool)
    (tmp_path / "one" / "tool").symlink_to(tool)
    environ = {"T": "one", "HOST": "a.example", "AT": str(tmp_path / "one")}

    def digests():
        here = {"command": "server", "args": ["--key", "${env:T}"]}
        entries = [
            {"url": "https://a.example/${env:T}?k=${env:T}"},
            here,
            {**here, "env": {"K": "${env:T}"}},
            {"url": "https://${HOST}/mcp"},
            {"command": "${AT}/tool"},
            {"command": "tool", "env": {"PATH": "${AT}"}},
            {**here, "cwd": "${AT}"},
            {**here, "env": {"PYTHONPATH": "${AT}"}},
            {"command": "server", "args": [f"${{file:{key}}}"]},
        ]
        found = [launch_of("n", entry(environ, **each)) for each in entries]
        assert str(tmp_path / "one") not in "".join(each.text + repr(each) for each in found)
        return [each.digest for each in found]

    before = digests()
    environ["T"] = "two"
    assert digests() == before
    environ |= {"HOST": "b.example", "AT": str(tmp_path / "two")}
    key.write_text("two")
    assert [now == then for now, then in zip(digests(), before, strict=True)] == [True] * 3 + [False] * 6


def test_a_configuration_cannot_hide_its_own_words():
    given = {"command": "sh", "args": ["-c", "rm -rf ~"], "env": {"API_TOKEN": "rm -rf ~"}}
    assert "rm -rf ~" in launch_of("n", entry(**given)).text


def test_the_user_is_asked_for_inputs_after_the_leave():
    asked = []
    given = asked_for(asked, command=sys.executable, args=["-c", "", "${input:key}"], env={"KEY": "${input:key}"})
    launch = launch_of("n", given)
    assert asked == [] and "typed-secret" not in launch.text and "from ${input:key}" in launch.text
    command = bound("n", given, launch).command()
    assert asked == ["key"] and command.args[-1] == command.env["KEY"] == "typed-secret"
    assert "typed-secret" not in repr(command)


@pytest.mark.parametrize(
    "members",
    [
        {"command": "${input:key}"},
        {"command": "python", "cwd": "${input:key}"},
        {"command": "python", "env": {"PYTHONPATH": "${input:key}"}},
        {"command": "python", "envFile": "${input:key}"},
    ],
)
def test_what_decides_the_code_is_not_asked_for_after_the_leave(members):
    asked = []
    with pytest.raises(ConfigError, match=r"after you approve the server.*use \$\{env:NAME\}"):
        launch_of("n", asked_for(asked, **members))
    assert asked == []


def test_an_entry_whose_source_changed_is_not_started():
    environ = {"A": "secret-a", "B": "secret-b"}
    given, changed = (entry(environ, url="https://a.example", headers={"K": f"${{env:{n}}}"}) for n in "AB")
    with pytest.raises(LocalError, match=r"not what was approved \(sources changed\)"):
        Bound(changed, launch_of("notes", given)).address()


def test_the_program_and_its_script_are_bound_by_their_content(tmp_path):
    program, script, data = (tmp_path / name for name in ("python", "server.py", "data.txt"))
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    script.write_text("one")
    data.write_text("data")

    def now():
        return launch("./python", "-u", "server.py", "data.txt", cwd=str(tmp_path))

    first = now()
    assert set(first.contents) == {str(program), str(script)} and first.arguments["contents"] == first.contents
    assert f'content of "{script}": sha256 ' in first.text and "not bound: what is loaded" in first.text
    data.write_text("other data")
    assert now().digest == first.digest, "what is no code may change"
    script.write_text("two")
    second = now()
    assert second.digest != first.digest
    program.write_text("#!/bin/false\n")
    assert now().digest not in (first.digest, second.digest)
    script.write_text("one")
    program.write_text("#!/bin/sh\n")
    assert now().digest == first.digest, "its time does not matter"


def test_a_file_too_large_to_be_read_is_bound_by_size_and_time_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "_MAX_HASHED", 4)
    script = tmp_path / "server.py"
    script.write_text("12345")
    os.utime(script, ns=(1, 7))
    [told] = launch("not-there", "python", "server.py", cwd=str(tmp_path)).contents.values()
    assert told == "not read: only its size (5) and time (7) are bound"


def test_a_file_that_cannot_be_read_is_not_bound_and_says_so(tmp_path, monkeypatch):
    script = tmp_path / "server.py"
    script.write_text("x")

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr("builtins.open", refuse)
    assert launch("x", "python", "server.py", cwd=str(tmp_path)).contents == {str(script): "cannot be read: not bound"}


def test_a_command_whose_script_changed_is_not_started_again(tmp_path):
    script = tmp_path / "server.py"
    script.write_text("one")
    command = Command.of([sys.executable, str(script)])
    again = bound("notes", command, launch_of("notes", command))
    assert again.command() == command
    script.write_text("two")
    with pytest.raises(LocalError, match=r"\(contents changed\)"):
        again.command()
    assert bound("notes", "https://a.example", launch_of("notes", "https://a.example")) == "https://a.example"


def test_values_of_deciding_variables_are_shown_without_secrets():
    env = {"NODE_AUTH_TOKEN": "abcdefgh", "PIP_INDEX_URL": "https://u:pass-word@h/", "npm_config_x": "y"}
    text = launch("a", env=env).text
    assert "abcdefgh" not in text and "pass-word" not in text and '  npm_config_x = "y"\n' in text


def test_a_proxy_of_a_configuration_is_bound_and_shown_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:my-own-word@proxy.example")
    given = launch(
        "tool", "--proxy=http://me:other-word@there", "my-own-word", env={"HTTPS_PROXY": "ann:secret@evil:8"}
    )
    assert 'HTTPS_PROXY = "[redacted]@evil:8"' in given.text and given.arguments["deciding"] == {
        "HTTPS_PROXY": "[redacted]@evil:8"
    }
    assert "--proxy=http://me:[redacted]@there" in given.text
    assert "secret" not in given.text.replace("look like secrets", "")
    assert "my-own-word" not in given.text and "other-word" not in given.text
    assert given.digest != launch("tool", "--proxy=http://me:new-word@there", "my-own-word").digest


def test_code_cannot_be_hidden_as_a_password():
    shown = launch("sh", "-c", "x://a:$(touch${IFS}file)@b").text
    assert "$(touch${IFS}file)" in shown
    proxied = launch("sh", "-c", "touch$IFS/x", env={"HTTP_PROXY": "http://a:touch$IFS/x@h"}).text
    assert '[2] "touch$IFS/x"' in proxied


def test_the_users_own_proxy_is_not_bound(monkeypatch):
    before = launch("tool").digest
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("SSL_CERT_FILE", "/etc/mine")
    assert launch("tool").digest == before
