"""The pages of the documentation as something that runs: their blocks of code, in the order of the page.

A block runs as it stands. What a page takes for granted (a server that was made before, a file that is there) is given
to it by its test; what cannot run says why in the line above it, in one of a few sentences:

    <!-- not run: it serves until it is stopped -->
    <!-- runs with mcp2 -->          code of another library, run in that library's environment by tests/interop
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from interlock.cli.main import main

__all__ = ["DOCS", "REASONS", "ROOT", "Block", "blocks_of", "run_blocks"]

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
REASONS = (
    "it serves until it is stopped",
    "it installs the suite from the network",
    "it needs a person at a terminal",
)
CODE = ("python", "console", "json", "toml")
DATA = ("text", "nginx", "ini", "yaml", "")  # what is said, drawn, or meant for another program
_FENCE = re.compile(
    r"^(?:<!-- (?P<mark>(?:not run|runs with)[^\n]*?) -->\n+)?"
    r"```(?P<language>[a-z]*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.M | re.S,
)
_PROGRAMS = {"python": sys.executable}
_SECONDS = 60.0


@dataclass
class Block:
    page: str
    line: int
    language: str
    title: str | None
    text: str
    mark: str | None
    follows: bool
    """Nothing stands between it and the block before."""

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_ours(self) -> bool:
        return self.mark is None

    @property
    def library(self) -> str | None:
        return self.mark.removeprefix("runs with ") if self.mark and self.mark.startswith("runs with ") else None

    @property
    def reason(self) -> str | None:
        return self.mark.removeprefix("not run: ") if self.mark and self.mark.startswith("not run: ") else None


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    found, end = list[Block](), -1
    for fence in _FENCE.finditer(text):
        line, parts = text.count("\n", 0, fence.start("text")), fence.group("language", "title", "text", "mark")
        found.append(Block(path.name, line, *parts, follows=end >= 0 and not text[end : fence.start()].strip()))
        end = fence.end()
    return found


def run_blocks(blocks: list[Block], names: dict[str, Any], folder: Path, env: dict[str, str]) -> None:
    """Run what can be run; what a program says, or a block whose output follows it, is compared."""
    said = ""
    for block in blocks:
        if block.title and block.language == "python":
            (folder / block.title).write_text(block.text, encoding="utf-8")
        if block.language == "text" and block.follows and said:
            assert said == block.text, f"{block.place}: it says\n{said}"
        said = run_block(block, names, folder, env) if block.is_ours else ""


def run_block(block: Block, names: dict[str, Any], folder: Path, env: dict[str, str]) -> str:
    """What it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "python":
            run_python(block, names)
    if block.language == "console":
        run_console(block, folder, env)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    return printed.getvalue()


def compiled(block: Block) -> Any:
    return compile(
        "\n" * block.line + block.text, block.place, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
    )


def run_python(block: Block, names: dict[str, Any]) -> None:
    waiting = eval(compiled(block), names)
    if waiting is not None:
        asyncio.run(asyncio.wait_for(waiting, _SECONDS))


def run_console(block: Block, folder: Path, env: dict[str, str]) -> None:
    """Lines with `$` are commands; the lines below one are what a terminal shows. `…` stands for anything."""
    code = 0
    for command, wanted in commands_in(block):
        program, *words = shlex.split(command)
        if program == "export":
            env.update(word.split("=", 1) for word in words)
            continue
        said, code = (f"{code}\n", 0) if command == "echo $?" else _ran(program, words, folder, env)
        shape = ".*".join(re.escape(part) for part in wanted.rstrip().split("…"))
        assert re.fullmatch(shape, said.rstrip(), re.S), f"{block.place}: {command}\n{said}"


def _ran(program: str, words: list[str], folder: Path, env: dict[str, str]) -> tuple[str, int]:
    """What a terminal would show, and the exit code. Our own command runs here: a process less for each."""
    if program == "interlock":
        return _in_process(words, env)
    done = subprocess.run(
        [_PROGRAMS[program], *words],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_SECONDS,
    )
    return done.stdout, done.returncode


def _in_process(words: list[str], env: dict[str, str]) -> tuple[str, int]:
    shown = io.StringIO()
    with contextlib.ExitStack() as around:
        around.enter_context(patch.dict(os.environ, env, clear=True))
        around.enter_context(patch("sys.stdin", io.StringIO()))
        around.enter_context(contextlib.redirect_stdout(shown))
        around.enter_context(contextlib.redirect_stderr(shown))
        try:
            main(words)
        except SystemExit as ended:
            return shown.getvalue(), int(ended.code or 0)
    return shown.getvalue(), 0


def commands_in(block: Block) -> list[tuple[str, str]]:
    parts = re.split(r"^\$ ", block.text, flags=re.M)
    assert not parts[0].strip(), f"{block.place}: a console begins with a command"
    return [(command, said) for command, _, said in (part.partition("\n") for part in parts[1:])]
