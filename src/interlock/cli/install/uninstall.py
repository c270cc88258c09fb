"""`interlock uninstall NAME --to PROGRAM`: take one server out of the list that a program keeps."""

from __future__ import annotations

from ...client.config.parser import ConfigError
from ...wire.escaping import display
from ..errors import USAGE, Failure
from ..options import Kind, Words, read_words
from ..terminal.output import note, say
from .atomic_file import change_file, read_whole
from .command import Place, here, place_of, show
from .json_edit import take_back, value_at

__all__ = ["HELP", "command"]

HELP = """\
examples:
  interlock uninstall notes --to claude-desktop
  interlock uninstall notes --to vscode --project --dry-run
  interlock uninstall notes --to json --config mcp.json

usage: interlock uninstall NAME --to PROGRAM
           --to PROGRAM    claude-desktop, claude-code, cursor, vscode, windsurf or zed; json with --config FILE
           --project       out of the file of this folder, not of this user
           --config FILE   out of this file
           --dry-run       show what would change, change nothing
"""
OPTIONS: dict[str, Kind] = {"to": "text", "config": "text", "project": "flag", "dry-run": "flag"}


def command(words: list[str]) -> int:
    said = read_words(words, OPTIONS)
    if len(said.own) != 1 or said.command is not None:
        raise Failure("this takes one NAME", code=USAGE, hint="interlock help uninstall")
    if said.options.get("to") == "json" and "config" not in said.options:
        raise Failure("out of which file?", code=USAGE, hint="--to json --config FILE: what was printed is in no list")
    place = place_of(said, here())
    try:
        return _uninstall(place, said, said.own[0])
    except ConfigError as error:
        raise Failure(str(error)) from error


def _uninstall(place: Place, said: Words, name: str) -> int:
    path, text = (place.program.member, name), read_whole(place.file)
    if value_at(text, path, place.where) is None:
        raise Failure(f"{place.where} has no server {display(name, 80)!r}")
    if said.flag("dry-run"):
        show(place, text, take_back(text, path, place.where), path)
        return 0
    change_file(place.file, lambda now: take_back(now, path, place.where))
    say(f"{display(name, 80)} is no longer in {place.where}")
    note(f"next: {place.program.after}")
    return 0
