"""What an error quotes of a server's stderr: the last lines, tracebacks whole, without what our own probe caused.

Servers on the Python SDK 1.x do not know `server/discover` and report it with a list of some hundred lines (1.9 and
later), or end with a traceback that holds the same list (before). Neither is ever the cause of a failure.
"""

from __future__ import annotations

import re

__all__ = ["MAX_REPORT_BYTES", "quote_stderr"]

MAX_LINES = 20
MAX_REPORT_BYTES = 32 * 1024  # of what the probe causes; 21 KiB were seen, wrapped into narrow columns
_TRACEBACK = re.compile(r"[\s|+]*(Exception Group )?Traceback \(most recent call last\):")
_REPORT = re.compile(r"validation errors? for |Failed to validate request")
_FIELD = re.compile(r"[A-Za-z]+(Request|Notification)(\.[\w.\[\]]+)+$")  # a line of such a list
_CHAINED = ("During handling of the above", "The above exception was")
_PROBE = "'server/discover'"


def quote_stderr(text: str) -> str:
    """The last lines of `text`; a traceback that begins in them or before is not cut."""
    kept: list[str] = []
    for block in reversed(_blocks(text.strip().splitlines())):
        if len(kept) >= MAX_LINES:
            break
        if len(block) == 1 or not any(_PROBE in line for line in block):
            kept[:0] = block
    return "\n".join(kept).strip()


def _blocks(lines: list[str]) -> list[list[str]]:
    """Single lines, and the lines that belong together."""
    blocks: list[list[str]] = []
    at = 0
    while at < len(lines):
        end = at + 1
        if _TRACEBACK.match(lines[at]):
            end = _end_of_traceback(lines, at)
        elif _REPORT.search(lines[at]) or (at == 0 and _is_part_of_report(lines[0])):
            end = _end_of_report(lines, at + 1)
        blocks.append(lines[at:end])
        at = end
    return blocks


def _end_of_traceback(lines: list[str], at: int) -> int:
    """The index after the traceback that begins there, and after those it is chained with."""
    is_group = lines[at][:1].isspace()
    end = at + 1
    while end < len(lines) and lines[end][:1].isspace():
        end += 1
    if not is_group:
        end += 1  # the line with the exception
    end = _end_of_report(lines, end)
    if lines[end : end + 1] == [""] and end + 3 < len(lines) and lines[end + 1].startswith(_CHAINED):
        return _end_of_traceback(lines, end + 3)
    return min(end, len(lines))


def _end_of_report(lines: list[str], at: int) -> int:
    while at < len(lines) and _is_part_of_report(lines[at]):
        at += 1
    return at


def _is_part_of_report(line: str) -> bool:
    return line[:1].isspace() or _FIELD.match(line) is not None
