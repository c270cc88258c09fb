"""`interlock doctor TARGET`: what is wrong with a server, step by step, and what to do about it."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

import msgspec

from ..connect import OPTIONS, OPTIONS_HELP, client_options
from ..errors import FAILED, OK, UNAUTHORIZED, USAGE, Failure
from ..options import Words, read_words
from ..target import Aim, aim_of
from ..terminal.output import as_json, is_colourful, say, say_lines
from ..terminal.output_buffer import hold_logs
from ..terminal.progress import Progress
from .checks import Checkup, Finding

__all__ = ["HELP", "command", "finding_lines"]

HELP = f"""\
examples:
  interlock doctor server.py                      is everything as others expect it?
  interlock doctor notes                          why does the host not start this server?
  interlock doctor https://example.com/mcp        address, TLS, path, transport, login
  interlock doctor --strict server.py             warnings are failures, for a build
  interlock doctor -- npx some-server             a server that is started by a command

usage: interlock doctor TARGET [--strict]

Step by step: the target, the connection, the protocol, what it offers, who may use it, every list and every schema in
it, errors, timing, and how it ends. Each step is ok, warn or fail, with what to do. What takes longer than two seconds
is named on stderr. The exit code is 0 when nothing failed, 1 when something did, 6 when only a login is missing.

  --strict                     warnings count as failures

{OPTIONS_HELP}"""
_COLOURS = {"ok": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m"}
_MOST_REMARKS = 20  # of one list on the screen; --json has all of them


def command(words: list[str]) -> int:
    given = read_words(words, {**OPTIONS, "strict": "flag"})
    own = list(given.own)
    aim = aim_of(given, own)
    if own:
        raise Failure(f"one TARGET at a time, and {own[0][:60]!r} is more", code=USAGE)
    hold_logs(given.flag("debug"))
    json = given.flag("json")
    colour = is_colourful(sys.stdout)
    if not json:
        say(f"interlock doctor {aim.name}\n")
    checkup = _checkup(
        given, aim, lambda finding: None if json else say_lines("\n".join(finding_lines(finding, colour)))
    )
    findings = _run(checkup)
    state, said = _verdict(findings, given.flag("strict"))
    told = {"target": aim.name, "state": state, "findings": msgspec.to_builtins(findings)}
    say(as_json(told) if json else f"\n{said}")
    if state != "fail":
        return OK
    only_login = [finding.step for finding in findings if finding.state == "fail"] == ["auth"]
    return UNAUTHORIZED if checkup.wants_login and only_login else FAILED


def _checkup(given: Words, aim: Aim, tell: Callable[[Finding], None]) -> Checkup:
    """Nobody is asked anything meanwhile."""
    options = {name: each for name, each in client_options(given, aim, Progress()).items() if "elicit" not in name}
    return Checkup(aim, options, tell)


def _run(checkup: Checkup) -> list[Finding]:
    logger, quiet = logging.getLogger("interlock.client"), logging.NullHandler()
    logger.addHandler(quiet)  # what it has to say of the server, we say
    try:
        return asyncio.run(checkup.run())
    finally:
        logger.removeHandler(quiet)


def finding_lines(finding: Finding, colour: bool = False) -> list[str]:
    """One step, for people."""
    lines = [f"{_mark(finding.state, colour)}  {finding.step:10} {finding.said}"]
    if finding.todo:
        lines.append(f"{'':18}→ {finding.todo}")
    for remark in finding.remarks[:_MOST_REMARKS]:
        lines.append(f"{'':6}{_mark(remark.state, colour)}  {remark.where}: {remark.said}")
        lines.append(f"{'':18}→ {remark.todo}")
    if len(finding.remarks) > _MOST_REMARKS:
        lines.append(f"{'':6}… and {len(finding.remarks) - _MOST_REMARKS} more (--json has all of them)")
    return lines


def _mark(state: str, colour: bool) -> str:
    return f"{_COLOURS[state]}{state:4}\x1b[0m" if colour else f"{state:4}"


def _verdict(findings: list[Finding], strict: bool) -> tuple[str, str]:
    """What all of it comes to; findings with remarks count by these."""
    states = [each.state for finding in findings for each in finding.remarks or [finding]]
    fails, warns = states.count("fail"), states.count("warn")
    said = f"{fails or 'no'} fault{'' if fails == 1 else 's'}, {warns or 'no'} warning{'' if warns == 1 else 's'}"
    return ("fail" if fails or (strict and warns) else "warn" if warns else "ok"), said
