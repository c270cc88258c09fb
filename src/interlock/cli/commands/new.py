"""`interlock new NAME`: a small project that runs, tests itself and can be shown to somebody at once."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from ...version import __version__
from ...wire.escaping import display
from ...wire.json.lenient import members_of
from ..errors import USAGE, Failure
from ..options import read_words
from ..terminal.output import say
from .new_templates import FILES

__all__ = ["HELP", "command", "make"]

HELP = """\
examples:
  interlock new weather              a folder weather with a server, its tests and a README
  interlock new services/weather     the same, in another folder

usage: interlock new NAME
           NAME: a folder that is not there yet, or is empty; its last part is the name of the server
"""
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,63}"


def command(words: list[str]) -> int:
    said = read_words(words, {})
    if len(said.own) != 1 or said.command is not None:
        raise Failure("this takes one NAME", code=USAGE, hint="interlock help new")
    folder = Path(said.own[0])
    for name in make(folder):
        say(f"made {display(str(folder / name), 300)}")
    shown = display(str(folder), 300)
    tests = ["python -m pytest"] if find_spec("pytest") else ["pip install pytest", "python -m pytest"]
    say("\nnext: " + "\n      ".join([f"cd {shown}", *tests, "interlock run server.py --http"]))
    return 0


def make(folder: Path) -> list[str]:
    """Write the project; the names of its files. All of them or none."""
    name = folder.name
    if not re.fullmatch(_NAME, name):
        hint = "begin with a letter; letters, digits, - and _ may follow, at most 64 in all"
        raise Failure(f"{display(str(folder), 80)!r} is no name for a project", code=USAGE, hint=hint)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Failure(f"{display(str(folder), 300)} is not empty", hint="choose another name")
        return [_write(folder, file, text, name) for file, text in FILES.items()]
    except OSError as error:
        _undo(folder, made)
        raise Failure(f"{display(str(folder), 300)} cannot be written: {error.strerror}") from None


def _write(folder: Path, file: str, text: str, name: str) -> str:
    with open(folder / file, "x", encoding="utf-8", newline="\n") as opened:
        opened.write(text.replace("@NAME@", name).replace("@INTERLOCK@", _requirement()))
    return file


def _requirement() -> str:
    """What a project depends on: where this Interlock was installed from, else its version in the registry.

    Before a release a registry has no such version, and may have another package of that name.
    """
    try:
        origin = members_of(json.loads(distribution("interlock").read_text("direct_url.json") or "{}"))
    except PackageNotFoundError:
        origin = members_of(None)
    url = origin.get("url")
    if not isinstance(url, str) or '"' in url or "\\" in url:
        return f"interlock>={__version__}"
    source = members_of(origin.get("vcs_info"))
    at = f"@{source['commit_id']}" if source.get("commit_id") else ""
    return f"interlock @ {source['vcs'] + '+' if source.get('vcs') else ''}{url}{at}"


def _undo(folder: Path, made: bool) -> None:
    """What was begun; the folder was empty, so all that is in it is ours."""
    for file in FILES:
        if (folder / file).is_file():
            os.unlink(folder / file)
    if made:
        shutil.rmtree(folder, ignore_errors=True)
