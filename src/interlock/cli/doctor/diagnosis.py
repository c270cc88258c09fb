"""Why a server could not be spoken to: from an error, and what was seen of the process, to a cause and what to do.

An error says what happened to us. A person with a broken server wants to know what is wrong there.
"""

from __future__ import annotations

import socket
import ssl

import msgspec

from ...wire.errors import (
    AuthorizationFailed,
    AuthRequired,
    CallTimeout,
    ConnectionEnded,
    HttpStatus,
    InterlockError,
    LoginRequired,
    NoCommonRevision,
    SpawnFailed,
)
from ...wire.lazy_regex import pattern
from ..target import Aim
from ..terminal.output import one_line
from .process_monitor import Evidence

__all__ = ["Cause", "cause_of", "is_elsewhere", "last_words", "unreachable"]

# What processes say when they die, and what helps; the first that is found in the last lines counts.
_LAST_WORDS = (
    (
        r"ModuleNotFoundError: No module named '?([\w.]+)",
        "the module {0} is missing in the Python that starts it: install it there, or name that Python's full path",
    ),
    (r"Cannot find (?:module|package) '?([^\s']+)", "the package {0} is missing: install it where it is started from"),
    (r"(SyntaxError|IndentationError): .*", "its own code does not compile ({0}): mend the place named above"),
    (r"(?:Address already in use|EADDRINUSE)", "its port is taken: stop the other process, or give it another port"),
    (
        r"(?:KeyError: '?([A-Z][A-Z0-9_]{2,})|([A-Z][A-Z0-9_]{2,}) (?:is|environment variable)\b.*)",
        "it misses a variable ({0}): give it with --env, or in `env` of the configuration",
    ),
    (r"[Pp]ermission denied", "it may not open something: check who owns the files it names"),
    (r"(?:can't open file|No such file or directory)", "a file is not where it looks: give full paths, or --cwd"),
)
_STATUS = {
    301: "give the URL that the server points to",
    302: "give the URL that the server points to",
    307: "give the URL that the server points to",
    308: "give the URL that the server points to",
    400: "look at the server's log: it does not understand what every MCP client sends first",
    403: "what you are, or where you come from, is not allowed: check Host and Origin rules, and the token's rights",
    404: "there is no endpoint at this path: most servers have it at /mcp, older ones at /sse",
    405: "this path takes no POST: give the MCP endpoint, most servers have it at /mcp",
    406: "this path gives neither JSON nor events: give the MCP endpoint",
    415: "this path takes no JSON: give the MCP endpoint",
    429: "it is asked too often: wait, then try again",
    502: "the gateway before it gets no answer: look whether the server itself runs",
    501: "this is no MCP endpoint, but some other server of the web: check host, port and path",
    503: "it takes no requests now: look whether it is starting or overloaded",
    504: "the gateway before it gets no answer in time: look at the server's log",
}


class Cause(msgspec.Struct, frozen=True):
    said: str
    todo: str


def cause_of(error: InterlockError, aim: Aim, seen: Evidence) -> Cause:
    """Of an opening that failed."""
    match error:
        case SpawnFailed():
            return _with_withheld(error, _not_started(error))
        case NoCommonRevision():
            todo = "update the older of both; --revision, if you gave it, may exclude all that the server speaks"
            return Cause(one_line(str(error), 400), todo)
        case AuthRequired() | LoginRequired() | AuthorizationFailed():
            return Cause(
                one_line(str(error), 400), "log in with --auth browser, or give a token with --bearer VARIABLE"
            )
        case HttpStatus():
            todo = _STATUS.get(error.status, "look at the server's log: it failed by itself")
            said = f"; it said: {one_line(error.body, 300)}" if error.body else ""
            return Cause(f"it answers with HTTP status {error.status}{said}", todo)
        case CallTimeout():
            return _with_withheld(error, _silent(error, aim, seen))
        case ConnectionEnded() if aim.is_remote:
            said = one_line(str(error).partition("\n")[0], 300)
            return Cause(said, "does it speak HTTP there? look at its log, and at what is in between")
        case ConnectionEnded():
            return _with_withheld(error, _died(error, seen))
        case _:
            return _no_server(error, aim, seen)


def _with_withheld(error: InterlockError, cause: Cause) -> Cause:
    withheld = error.describe_withheld("with --env NAME")
    return Cause(cause.said, f"{cause.todo}; {withheld}") if withheld else cause


# --- processes ------------------------------------------------------------------------------------


def _not_started(error: SpawnFailed) -> Cause:
    behind = error.__cause__
    if isinstance(behind, PermissionError):
        return Cause(one_line(str(behind), 200), "make it executable (chmod +x), or start it by its interpreter")
    todo = "install it, or give its full path; a shell's aliases and functions do not count here"
    return Cause(one_line(str(error), 300), todo)


_ENDED = (
    "is this the command of a server, over stdio? One stays until its stdin is closed; "
    "run it by itself and look at what it prints"
)


def _died(error: ConnectionEnded, seen: Evidence) -> Cause:
    if seen.broken and not seen.messages:
        return _broken(seen)
    said, todo = one_line(str(error).partition("\n")[0], 300), ""
    last = last_words(error.stderr)
    if last:
        said += f"; it said: {last[0]}"
        todo = last[1]
    if seen.messages == 0 and seen.junk:
        said += f"; on stdout it wrote: {one_line(seen.junk_lines[0], 100)!r}"
    if error.exit_code == 0 and not seen.messages:
        todo = todo or _ENDED
    return Cause(said, todo or "run the same command by itself and look at what it prints")


def last_words(stderr: str) -> tuple[str, str] | None:
    """The line that says why a process ended, and what helps against it."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    for text, todo in _LAST_WORDS:
        for line in reversed(lines):
            if (found := pattern(text).search(line)) is not None:
                names = [each for each in found.groups() if each] or [""]
                return one_line(line, 300), todo.format(one_line(names[0], 60))
    return (one_line(lines[-1], 300), "") if lines else None


def _silent(error: CallTimeout, aim: Aim, seen: Evidence) -> Cause:
    if aim.is_remote:
        return Cause(f"it does not answer within {error.seconds:g} s", "look at its log; --timeout waits longer")
    if seen.broken:
        return _broken(seen)
    if seen.junk:
        said = f"it writes to stdout, and no message: {one_line(seen.junk_lines[0], 100)!r}"
        return Cause(said, "is this a server over stdio? some need an argument for it, like `stdio` or `--stdio`")
    if seen.messages:
        return Cause("it says something, and does not answer initialize", "look at its stderr, with --debug")
    said = f"it started, and said nothing within {error.seconds:g} s"
    last = last_words(error.stderr)
    said += f"; on stderr: {last[0]}" if last else ""
    return Cause(said, "is this a server over stdio? if it only starts slowly, --timeout waits longer")


def _broken(seen: Evidence) -> Cause:
    said = f"what it answers is no JSON-RPC: {one_line(seen.junk_lines[0], 120)!r}"
    return Cause(said, "write each message as one line of JSON, and nothing else, to stdout, and flush it")


# --- the network ----------------------------------------------------------------------------------


def unreachable(error: Exception, tls: bool) -> Cause:
    """Why there is no connection at all: of what the system, or TLS, says."""
    match error:
        case socket.gaierror() | UnicodeError():
            told = getattr(error, "strerror", None) or "no name of a host"
            return Cause(f"there is no such host ({told})", "check the name, and that you are online")
        case ssl.SSLCertVerificationError():
            told = f"its certificate is not trusted: {one_line(error.verify_message, 200)}"
            return Cause(told, "mend the certificate (name, date, issuer): it is never ignored")
        case ssl.SSLError():
            told = one_line(getattr(error, "reason", None) or str(error), 100)
            return Cause(f"no TLS there ({told})", "is it http:// and not https://?")
        case ConnectionRefusedError():
            return Cause("nobody listens there: connection refused", "start the server, and check host and port")
        case ConnectionResetError() if tls:
            return Cause("it closes the connection instead of TLS", "is it http:// and not https://?")
        case TimeoutError():
            return Cause("nobody answers there", "check the address; a firewall in between drops what it does not like")
        case _:
            told = getattr(error, "strerror", None) or str(error)
            return Cause(f"no connection: {one_line(told, 200)}", "check the address, and that you are online")


def is_elsewhere(error: InterlockError) -> bool:
    """Could the endpoint stand at another path of the same server?"""
    if isinstance(error, HttpStatus):
        return error.status in (400, 404, 405, 406, 415, 501)
    return not isinstance(error, ConnectionEnded | CallTimeout)


def _no_server(error: InterlockError, aim: Aim, seen: Evidence) -> Cause:
    if seen.broken:
        return _broken(seen)
    where = "this is no MCP endpoint, but something else of the web" if aim.is_remote else "check what it answers"
    return Cause(one_line(str(error).partition("\n")[0], 400), where)
