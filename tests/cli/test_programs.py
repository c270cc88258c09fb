"""cli/programs.py: where each program keeps its list, and how it writes an entry."""

from pathlib import Path

import pytest

from interlock.cli.programs import PROGRAMS, Surroundings
from interlock.client.config.entries import read_config

HOME = Path("/home/me")
FROM = {
    "linux": Surroundings("linux", HOME, {}, Path("/project")),
    "darwin": Surroundings("darwin", HOME, {}, Path("/project")),
    "win32": Surroundings("win32", HOME, {"APPDATA": "/home/me/Roaming"}, Path("/project")),
}
LIBRARY = "Library/Application Support"


@pytest.mark.parametrize(
    ("word", "linux", "darwin", "win32"),
    [
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            f"{LIBRARY}/Claude/claude_desktop_config.json",
            "Roaming/Claude/claude_desktop_config.json",
        ),
        ("claude-code", ".claude.json", ".claude.json", ".claude.json"),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json", f"{LIBRARY}/Code/User/mcp.json", "Roaming/Code/User/mcp.json"),
        ("windsurf", *[".codeium/windsurf/mcp_config.json"] * 3),
        ("zed", ".config/zed/settings.json", ".config/zed/settings.json", "Roaming/Zed/settings.json"),
    ],
)
def test_the_files_are_where_the_programs_look(word, linux, darwin, win32):
    found = [PROGRAMS[word].place(FROM[platform]) for platform in ("linux", "darwin", "win32")]
    assert found == [HOME / linux, HOME / darwin, HOME / win32]


def test_every_program_was_asked():
    assert set(PROGRAMS) == {"claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "zed"}


@pytest.mark.parametrize(
    ("word", "environ", "place"),
    [
        ("zed", {"XDG_CONFIG_HOME": "/x"}, "/x/zed/settings.json"),
        ("vscode", {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("vscode", {"XDG_CONFIG_HOME": ""}, "/home/me/.config/Code/User/mcp.json"),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
    ],
)
def test_variables_that_move_a_file_are_heeded(word, environ, place):
    assert PROGRAMS[word].place(Surroundings("linux", HOME, environ, Path("/project"))) == Path(place)


def test_without_appdata_windows_has_its_usual_place():
    found = PROGRAMS["vscode"].place(Surroundings("win32", HOME, {}, Path("/project")))
    assert found == HOME / "AppData/Roaming/Code/User/mcp.json"


def test_zed_on_macos_ignores_a_variable_of_linux():
    found = PROGRAMS["zed"].place(Surroundings("darwin", HOME, {"XDG_CONFIG_HOME": "/x"}, Path("/project")))
    assert found == HOME / ".config/zed/settings.json"


def test_files_of_a_project():
    found = {word: each.place(FROM["linux"], of_project=True) for word, each in PROGRAMS.items()}
    assert found["claude-code"] == Path("/project/.mcp.json")
    assert found["cursor"] == Path("/project/.cursor/mcp.json")
    assert found["vscode"] == Path("/project/.vscode/mcp.json")
    assert found["zed"] == Path("/project/.zed/settings.json")
    assert found["claude-desktop"] is None and found["windsurf"] is None


def test_a_program_is_there_with_its_folder(tmp_path):
    around = Surroundings("linux", tmp_path, {}, tmp_path)
    for program in PROGRAMS.values():
        assert not program.is_there(around), program.title
    for made in (".config/Claude", ".config/Code/User", ".config/zed", ".cursor", ".codeium/windsurf", ".claude"):
        (tmp_path / made).mkdir(parents=True)
    for program in PROGRAMS.values():
        assert program.is_there(around), program.title


def test_claude_code_is_there_with_its_file_or_where_it_was_moved_to(tmp_path):
    claude = PROGRAMS["claude-code"]
    assert claude.is_there(Surroundings("linux", tmp_path, {"CLAUDE_CONFIG_DIR": str(tmp_path)}, tmp_path))
    assert not claude.is_there(Surroundings("linux", tmp_path, {"CLAUDE_CONFIG_DIR": "/nowhere"}, tmp_path))
    (tmp_path / ".claude.json").write_text("{}")
    assert claude.is_there(Surroundings("linux", tmp_path, {}, tmp_path))


def test_entries_are_written_as_each_program_reads_them():
    by_command = {word: each.by_command(["/python", "-m", "x"], {"A": "b"}) for word, each in PROGRAMS.items()}
    plain = {"command": "/python", "args": ["-m", "x"], "env": {"A": "b"}}
    for word in ("claude-desktop", "cursor", "windsurf", "zed"):
        assert by_command[word] == plain
    for word in ("claude-code", "vscode"):
        assert by_command[word] == {"type": "stdio", **plain}
    url = "https://example.com/mcp"
    by_url = {word: each.by_url(url) for word, each in PROGRAMS.items()}
    assert by_url["claude-desktop"] is None
    assert by_url["windsurf"] == {"serverUrl": url}
    assert by_url["cursor"] == by_url["zed"] == {"url": url}
    assert by_url["claude-code"] == by_url["vscode"] == {"type": "http", "url": url}


def test_no_variables_are_no_member():
    assert "env" not in PROGRAMS["cursor"].by_command(["x"], {})


@pytest.mark.parametrize("word", [word for word in PROGRAMS if word not in ("zed", "windsurf")])
def test_our_own_client_reads_what_is_written(word):
    program = PROGRAMS[word]
    entry = program.by_command(["/python", "-m", "x"], {"A": "b"})
    assert read_config({program.member: {"mine": entry}})["mine"].command().args == ("/python", "-m", "x")
    if (remote := program.by_url("https://example.com/mcp")) is not None:
        assert read_config({program.member: {"mine": remote}})["mine"].address()[0] == "https://example.com/mcp"
    if program.reference is not None:
        named = program.by_command(["/python"], {"A": program.reference.format("KEY")})
        config = read_config({program.member: {"mine": named}}, environ={"KEY": "value"})
        assert config["mine"].command().env == {"A": "value"}
