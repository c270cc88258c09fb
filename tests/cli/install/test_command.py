"""cli/install/command.py: one entry in a program's list; every other byte of its file stays."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.cli.errors import Failure
from interlock.cli.install import command as install
from interlock.cli.install import uninstall
from interlock.cli.install.command import name_for
from interlock.cli.main import main
from interlock.cli.programs import PROGRAMS, Surroundings
from interlock.client.config.parser import members_in
from support.properties import JSON_OBJECTS, many
from support.settings_files import is_kept, shuffled

ONE = "from interlock import Server\nserver = Server('My notes!')\n"
VSCODE = """\
{
\t// what the team uses
\t"servers": {
\t\t"other": {"type": "http", "url": "https://example.com/mcp"}, // keep
\t},
\t"inputs": [],
}
"""
ZED = """\
// Zed settings
{
  "ui_font_size": 16.50,
  "context_servers": {}, /* none yet */
  "theme": "One \\u0044ark",
}"""
CLAUDE = '{"numStartups":3,"mcpServers":{"theirs":{"command":"x","env":{"TOKEN":"theirs-s3cret"}}},"é":1}'
WINDSURF = '\ufeff{\r\n    "mcpServers": {\r\n    }\r\n}\r\n'
CURSOR = '{\n  "mcpServers": {\n    "a": {\n      "command": "a"\n    }\n  }\n}'
FILES = {
    "vscode": VSCODE,
    "zed": ZED,
    "claude-code": CLAUDE,
    "windsurf": WINDSURF,
    "cursor": CURSOR,
    "claude-desktop": "",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user of Linux with a project in which they are."""
    (tmp_path / "work" / "notes").mkdir(parents=True)
    (tmp_path / "work" / "notes" / "server.py").write_text(ONE)
    monkeypatch.chdir(tmp_path / "work")
    around = Surroundings("linux", tmp_path, {}, tmp_path / "work")
    monkeypatch.setattr(install, "here", lambda: around)
    monkeypatch.setattr("interlock.cli.install.uninstall.here", lambda: around)
    return tmp_path


@pytest.fixture
def file_of(home):
    def make(word, text=None):
        path = PROGRAMS[word].place(Surroundings("linux", home, {}, home / "work"))
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_bytes(text.encode())
        return path

    return make


def refused(*words):
    with pytest.raises(Failure) as caught:
        install.command([*words])
    return caught.value


def entry(home, **env):
    server = str(home / "work" / "notes" / "server.py")
    made = {"command": sys.executable, "args": ["-P", "-m", "interlock", "run", server]}
    return {**made, "env": env} if env else made


@pytest.mark.parametrize("word", PROGRAMS)
def test_an_entry_goes_in_and_comes_out_again(word, home, file_of, capsys):
    path = file_of(word, FILES[word])
    main(["install", "notes/server.py", "--to", word])
    assert capsys.readouterr().out == f"My-notes is in {path}\n"
    text = path.read_bytes().decode("utf-8-sig")
    found = members_in(text, "x")[PROGRAMS[word].member]["My-notes"]
    assert {name: value for name, value in found.items() if name != "type"} == entry(home)
    before = FILES[word].removeprefix("\ufeff")
    assert (
        members_in(before or "{}", "x").items()
        <= {**members_in(text, "x"), PROGRAMS[word].member: _old(before, word)}.items()
    )
    main(["install", "notes/server.py", "--to", word])
    assert "already" in capsys.readouterr().out
    assert path.read_bytes().decode("utf-8-sig") == text
    main(["uninstall", "My-notes", "--to", word])
    if _old(before, word):
        assert path.read_bytes().decode() == FILES[word]


def _old(text, word):
    return members_in(text or "{}", "x").get(PROGRAMS[word].member)


@pytest.mark.parametrize(
    ("word", "after"),
    [
        ("vscode", VSCODE.replace('"}, // keep\n', '"}, // keep\n\t\t"n": ENTRY,\n')),
        ("zed", ZED.replace("{},", '{\n    "n": ENTRY\n  },')),
        ("claude-code", CLAUDE.replace('"}}},', '"}}, "n": ENTRY},')),
        ("windsurf", WINDSURF.replace("{\r\n    }", '{\r\n        "n": ENTRY\r\n    }')),
        ("cursor", CURSOR.replace("    }\n  }", '    },\n    "n": ENTRY\n  }')),
        ("claude-desktop", '{\n  "mcpServers": {\n    "n": ENTRY\n  }\n}\n'),
    ],
)
def test_only_the_entry_is_new(word, after, file_of, capsys):
    path = file_of(word, FILES[word])
    main(["install", "notes/server.py", "--to", word, "--name", "n"])
    head, _, tail = after.partition("ENTRY")
    text = path.read_bytes().decode()
    assert text.startswith(head) and text.endswith(tail)
    assert json.loads(text[len(head) : len(text) - len(tail)])["args"][:3] == ["-P", "-m", "interlock"]


@pytest.mark.parametrize("word", PROGRAMS)
@many(30)
@given(members=JSON_OBJECTS, servers=JSON_OBJECTS, seed=st.integers(0, 2**32), mark=st.sampled_from(["", "\ufeff"]))
def test_whatever_a_program_keeps_stays_byte_for_byte(word, file_of, members, servers, seed, mark):
    """Any layout, comments, line ends, a mark at the beginning, no line break at the end; in and out again."""
    member, servers = PROGRAMS[word].member, {**servers, "theirs": {"command": "x"}}
    text = mark + shuffled(seed, {**members, member: {**servers, "My-notes": {}} if seed % 2 else servers})
    path = file_of(word, text)
    words = ["--to", word, "--name", "mine"]
    assert install.command(["notes/server.py", *words]) == 0
    assert is_kept(text, path.read_bytes().decode())
    assert uninstall.command(["mine", "--to", word]) == 0
    assert path.read_bytes().decode() == text


def test_a_dry_run_shows_a_diff_and_changes_nothing(home, file_of, capsys, monkeypatch):
    monkeypatch.setenv("API_KEY", "ours-s3cret")
    for word, text in FILES.items():
        path = file_of(word, text)
        main(["install", "notes/server.py", "--to", word, "--env", "API_KEY", "--dry-run"])
        shown = capsys.readouterr()
        assert path.read_bytes().decode() == text
        assert "s3cret" not in shown.out and '"API_KEY": "…"' in shown.out
        assert shown.out.startswith(f"--- {path}\n+++ {path}\n@@") and "nothing was changed" in shown.err


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_dry_run_shows_no_value_of_a_header_or_variable(command, home, file_of, capsys):
    entry = {"url": "https://old.example", "headers": {"Authorization": "Bearer s3cret"}, "env": {"KEY": "s3cret-too"}}
    file_of("cursor", json.dumps({"mcpServers": {"docs": entry}}, indent=2))
    own = ["--url", "https://new.example", "--name", "docs", "--replace"] if command == "install" else ["docs"]
    main([command, *own, "--to", "cursor", "--dry-run"])
    shown = capsys.readouterr()
    assert "s3cret" not in shown.out + shown.err
    assert '"Authorization": "…"' in shown.out and '"url": "https://old.example"' in shown.out


def test_variables_are_read_or_asked_for_and_never_shown(home, file_of, capsys, monkeypatch):
    path = file_of("cursor", "{}")
    monkeypatch.setenv("API_KEY", "s3cret")
    monkeypatch.delenv("OTHER", raising=False)
    assert "OTHER is not set" in refused("notes/server.py", "--to", "cursor", "--env", "OTHER").message
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("getpass.getpass", lambda shown, stream: f"answer to {shown}")
    main(["install", "notes/server.py", "--to", "cursor", "--env", "API_KEY", "--env", "OTHER"])
    found = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["My-notes"]["env"]
    assert found == {"API_KEY": "s3cret", "OTHER": "answer to OTHER: "}
    shown = capsys.readouterr()
    assert "s3cret" not in shown.out + shown.err


@pytest.mark.parametrize("name", ["A=b", "", "1A", "A B", "A\x1b[2J", "A" * 201])
def test_what_is_no_name_of_a_variable_is_refused_without_its_value(name, file_of):
    file_of("cursor", "{}")
    failure = refused("notes/server.py", "--to", "cursor", "--env", name)
    assert failure.code == 2 and "no name of a variable" in failure.message
    assert "=b" not in failure.told() and "\x1b" not in failure.told()


def test_another_server_of_that_name_is_not_replaced_unasked(file_of):
    path = file_of("claude-code", CLAUDE)
    failure = refused("notes/server.py", "--to", "claude-code", "--name", "theirs")
    assert "another server 'theirs'" in failure.message and "--replace" in failure.hint
    assert path.read_text(encoding="utf-8") == CLAUDE
    main(["install", "notes/server.py", "--to", "claude-code", "--name", "theirs", "--replace"])
    assert "s3cret" not in path.read_text(encoding="utf-8") and path.read_text(encoding="utf-8").endswith(',"é":1}')


def test_a_server_elsewhere(file_of):
    url = "https://example.com/mcp?a=b"
    for word, text in FILES.items():
        path = file_of(word, text)
        words = ["--url", url, "--name", "far", "--to", word]
        if word == "claude-desktop":
            assert "takes no addresses" in refused(*words).message
            continue
        main(["install", *words])
        assert url in members_in(path.read_text("utf-8-sig"), "x")[PROGRAMS[word].member]["far"].values()


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://x", "https://", "javascript:x", "https://a b", "http://[", "http://x/\n"]
)
def test_what_is_no_url_is_refused(url, file_of):
    file_of("cursor", "{}")
    failure = refused("--url", url, "--name", "x", "--to", "cursor")
    assert failure.code == 2 and "no http(s) URL" in failure.message


@pytest.mark.parametrize("name", ["a b", "-a", "", "ü", "a/b", "a;rm", "a" * 65, "$(x)"])
def test_names_are_checked(name, file_of):
    file_of("cursor", "{}")
    assert refused("notes/server.py", "--to", "cursor", f"--name={name}").code == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "one FILE"),
        (["notes/server.py"], "which program?"),
        (["notes/server.py", "--to", "emacs"], "no program 'emacs'"),
        (["notes/server.py", "x.py", "--to", "cursor"], "one FILE"),
        (["notes/server.py", "--url", "https://x", "--to", "cursor"], "one FILE"),
        (["notes/server.py", "--to", "cursor", "--", "x"], "one FILE"),
        (["no.py", "--to", "cursor"], "no file 'no.py'"),
        (["notes/server.py:1x", "--to", "cursor"], "no file"),
        (["--url", "https://x", "--to", "cursor"], "no name for a server"),
        (["--url", "https://x", "--name", "x", "--env", "A", "--to", "cursor"], "--env belongs to a FILE"),
        (["notes/server.py", "--to", "windsurf", "--project"], "no file for a project"),
    ],
)
def test_wrong_words_are_code_2(words, told, file_of):
    file_of("cursor", "{}")
    failure = refused(*words)
    assert failure.code == 2 and told in failure.message


def test_a_program_that_is_not_there_gets_nothing(home):
    before = sorted(home.rglob("*"))
    for word, program in PROGRAMS.items():
        failure = refused("notes/server.py", "--to", word)
        assert f"{program.title} is not installed" in failure.message and "--config" in failure.hint
    assert sorted(home.rglob("*")) == before


@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"a": 1, "a": 2}', "\0", "{}}"])
def test_a_file_that_is_not_understood_is_left_alone(text, file_of, capsys):
    path = file_of("cursor", text)
    with pytest.raises(SystemExit) as caught:
        main(["install", "notes/server.py", "--to", "cursor"])
    assert caught.value.code == 1
    assert path.read_text(encoding="utf-8") == text and str(path) in capsys.readouterr().err


def test_files_of_a_project_name_variables_and_hold_none(home, capsys, monkeypatch):
    monkeypatch.setenv("KEY", "s3cret")
    for word, reference in (("claude-code", "${KEY}"), ("cursor", "${env:KEY}"), ("vscode", "${env:KEY}")):
        main(["install", "notes/server.py:server", "--to", word, "--project", "--env", "KEY"])
        path = home / "work" / PROGRAMS[word].project
        found = json.loads(path.read_text(encoding="utf-8"))[PROGRAMS[word].member]["My-notes"]
        assert found["env"] == {"KEY": reference} and found["args"][-1].endswith("server.py:server")
    assert "no way to name a variable" in refused("notes/server.py", "--to", "zed", "--project", "--env", "KEY").message
    main(["install", "notes/server.py", "--to", "zed", "--project"])
    assert (home / "work" / ".zed" / "settings.json").is_file()


def test_json_is_printed_for_any_other_program(home, capsys, monkeypatch):
    monkeypatch.setenv("KEY", "s3cret")
    main(["install", "notes/server.py", "--to", "json", "--env", "KEY"])
    assert json.loads(capsys.readouterr().out) == {"mcpServers": {"My-notes": entry(home, KEY="${KEY}")}}
    main(["install", "notes/server.py", "--to", "json", "--config", "mcp.json"])
    assert json.loads(Path("mcp.json").read_text()) == {"mcpServers": {"My-notes": entry(home)}}


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("server.py", "import interlock\nx = interlock.Server(name='a b')", "a-b"),
        ("server.py", "from interlock import Server\na = Server('a')\nb = Server('b')", "notes"),
        ("tasks.py", "name = 'x'\nserver = Server(name)", "tasks"),
        ("main.py", "def (", "notes"),
        ("tasks.py", "Server(1)\nServer()\nServer(**{})", "tasks"),
        ("tasks.py", "raise SystemExit('it was run')\nServer('x')", "x"),
    ],
)
def test_a_server_is_called_by_its_own_name_without_running_it(home, name, source, found):
    path = home / "work" / "notes" / name
    path.write_text(source)
    assert name_for(str(path)) == name_for(f"{path}:server") == found


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import interlock_is_not_this", "No module named 'interlock_is_not_this'"),
        ("x = 1", "defines 0 servers"),
        (ONE + "raise SystemExit('not today')\n", "not today"),
        (ONE + "@server.tool\ndef f(n: int = 'x'): ...\n", "server.py line 3: f: the default of n"),
    ],
)
def test_a_file_that_cannot_be_served_is_refused(home, file_of, source, told):
    (home / "work" / "notes" / "server.py").write_text(source)
    file_of("cursor")
    found = refused("notes/server.py", "--to", "cursor")
    assert "cannot be served" in found.message and told in found.cause and "--no-check" in found.hint
    assert all(line.startswith("    ") for line in found.cause.splitlines()[1:])
    assert not file_of("cursor").exists()
    assert install.command(["notes/server.py", "--to", "cursor", "--name", "n", "--no-check"]) == 0


def test_a_variable_that_will_be_asked_for_does_not_fail_the_import(home, file_of, monkeypatch):
    (home / "work" / "notes" / "server.py").write_text("import os\nos.environ['API_KEY']\n" + ONE)
    monkeypatch.delenv("API_KEY", raising=False)
    assert install.command(["notes/server.py", "--to", "json", "--env", "API_KEY"]) == 0


def test_what_is_installed_starts(home, file_of):
    """The words of an entry, as a program would start them: from another folder, without our environment."""
    path = file_of("claude-desktop", "")
    main(["install", "notes/server.py", "--to", "claude-desktop"])
    found = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]["My-notes"]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    source = str(Path(install.__file__).parents[3])
    done = subprocess.run(
        [found["command"], *found["args"]],
        input=json.dumps(asked) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        cwd=home,
        env={"PYTHONPATH": source},
    )
    assert json.loads(done.stdout)["id"] == 1 and '"My notes!"' in done.stdout
