"""The programs that keep a list of MCP servers: where each keeps it, under which member, and how it writes an entry.

From the programs' own documentation, as of November 2026. Where a program moved its file, or somebody moved it for
themselves, `--config FILE` names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["PROGRAMS", "Program", "Surroundings"]


class Surroundings(msgspec.Struct, frozen=True):
    """What the places depend on."""

    platform: str
    """As `sys.platform`."""
    home: Path
    environ: Mapping[str, str]
    project: Path
    """The folder that a project's own file belongs to."""

    def settings(self) -> Path:
        """Where programs keep what belongs to one user."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        if self.platform == "win32":
            return Path(self.environ.get("APPDATA") or self.home / "AppData" / "Roaming")
        return Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")


class Program(msgspec.Struct, frozen=True):
    """One program. A place is of words below the home folder (`~`), the settings folder, or the project."""

    title: str
    user: str
    """The file of one user: below `~`, or else below the folder for settings."""
    project: str | None = None
    """The file of one project, where the program knows such a thing."""
    member: str = "mcpServers"
    typed: bool = False
    """Whether an entry says its `type`."""
    url: str | None = "url"
    """The member that holds an address; None where only commands can be listed."""
    reference: str | None = None
    """How an entry names a variable instead of holding its value."""
    after: str = ""
    """What to do for the change to be seen."""

    def place(self, around: Surroundings, *, of_project: bool = False) -> Path | None:
        """Its file; None where it has none of that kind."""
        if of_project:
            return around.project / self.project if self.project else None
        if self.user == _CLAUDE and (folder := around.environ.get("CLAUDE_CONFIG_DIR")):
            return Path(folder) / ".claude.json"
        if self.user == _ZED and around.platform != "win32":  # the same folder on macOS, unlike other programs
            base = around.environ.get("XDG_CONFIG_HOME") if around.platform != "darwin" else None
            return Path(base or around.home / ".config") / "zed" / "settings.json"
        base = around.home if self.user.startswith("~/") else around.settings()
        return base / self.user.removeprefix("~/")

    def is_there(self, around: Surroundings) -> bool:
        """Whether this user has it: its folder is there; of one that keeps its file at home, the file or a folder."""
        place = self.place(around)
        if place is not None and self.user == _CLAUDE and "CLAUDE_CONFIG_DIR" not in around.environ:
            return place.exists() or (around.home / ".claude").is_dir()
        return place is not None and place.parent.is_dir()

    def by_command(self, command: list[str], env: Mapping[str, str]) -> dict[str, Any]:
        """An entry that starts a server: words, never a line for a shell."""
        entry: dict[str, Any] = {"type": "stdio"} if self.typed else {}
        entry |= {"command": command[0], "args": command[1:]}
        return {**entry, "env": dict(env)} if env else entry

    def by_url(self, url: str) -> dict[str, Any] | None:
        if self.url is None:
            return None
        return {"type": "http", "url": url} if self.typed else {self.url: url}


_BY_ENV = "${{env:{}}}"
_CLAUDE, _ZED = "~/.claude.json", "Zed/settings.json"
PROGRAMS = {
    "claude-desktop": Program(
        "Claude Desktop", "Claude/claude_desktop_config.json", url=None, after="quit Claude Desktop and start it again"
    ),
    "claude-code": Program(
        "Claude Code",
        _CLAUDE,
        ".mcp.json",
        typed=True,
        reference="${{{}}}",
        after="start a new session; /mcp shows its servers",
    ),
    "cursor": Program(
        "Cursor", "~/.cursor/mcp.json", ".cursor/mcp.json", reference=_BY_ENV, after="look at Settings → MCP"
    ),
    "vscode": Program(
        "VS Code",
        "Code/User/mcp.json",
        ".vscode/mcp.json",
        member="servers",
        typed=True,
        reference=_BY_ENV,
        after="run “MCP: List Servers” and start it",
    ),
    "windsurf": Program(
        "Windsurf", "~/.codeium/windsurf/mcp_config.json", url="serverUrl", after="refresh the servers in Cascade"
    ),
    "zed": Program(
        "Zed", _ZED, ".zed/settings.json", member="context_servers", after="look at the settings of the agent panel"
    ),
}
"""By the word for `--to`."""
