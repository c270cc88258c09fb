"""cli/doctor/diagnosis.py: from an error to what is wrong at the server."""

import socket
import ssl

import pytest

from interlock.cli.doctor.diagnosis import cause_of, is_elsewhere, last_words, unreachable
from interlock.cli.doctor.process_monitor import Evidence
from interlock.cli.target import Aim
from interlock.wire import errors

URL, LOCAL = Aim("url", "u", "http://x"), Aim("command", "c", None)
TIMEOUT = errors.CallTimeout("open", 2, "connect")


def with_cause(error, behind):
    error.__cause__ = behind
    return error


@pytest.mark.parametrize(
    ("error", "aim", "seen", "said", "todo"),
    [
        (errors.SpawnFailed("could not start 'x'"), LOCAL, {}, "could not start", "full path"),
        (with_cause(errors.SpawnFailed("x"), PermissionError(13, "no")), LOCAL, {}, "no", "chmod +x"),
        (errors.NoCommonRevision("it speaks 1999"), LOCAL, {}, "1999", "update the older"),
        (errors.AuthRequired("no", 401), URL, {}, "no", "--auth browser"),
        (errors.HttpStatus("x", 404), URL, {}, "HTTP status 404", "/mcp"),
        (errors.HttpStatus("x", 403, body="only at localhost"), URL, {}, "it said: only at localhost", "Host"),
        (errors.HttpStatus("x", 500), URL, {}, "HTTP status 500", "log"),
        (TIMEOUT, URL, {}, "does not answer within 2 s", "log"),
        (TIMEOUT, LOCAL, {}, "said nothing within 2 s", "over stdio?"),
        (TIMEOUT, LOCAL, {"junk": 1, "junk_lines": ["hi\x1b"]}, "no message: 'hi\\\\x1b'", "over stdio?"),
        (TIMEOUT, LOCAL, {"junk": 1, "broken": 1, "junk_lines": ["{x"]}, "no JSON-RPC: '{x'", "one line of JSON"),
        (TIMEOUT, LOCAL, {"messages": 1}, "does not answer initialize", "stderr"),
        (errors.ConnectionLost("it broke\nmore"), URL, {}, "it broke", "HTTP"),
        (errors.PeerClosed("it ended"), LOCAL, {}, "it ended", "by itself"),
        (errors.PeerClosed("it ended"), LOCAL, {"junk": 1, "junk_lines": ["usage:"]}, "wrote: 'usage:'", "by itself"),
        (errors.PeerClosed("it ended", exit_code=0), LOCAL, {}, "it ended", "stays until its stdin is closed"),
        (errors.PeerClosed("it ended", exit_code=0), LOCAL, {"messages": 1}, "it ended", "run the same command"),
        (errors.PeerClosed("it ended"), LOCAL, {"broken": 1, "junk_lines": ["{x"]}, "no JSON-RPC: '{x'", "one line"),
        (errors.HandshakeFailed("odd"), LOCAL, {}, "odd", "answers"),
        (errors.HandshakeFailed("odd"), URL, {}, "odd", "something else of the web"),
        (errors.HandshakeFailed("odd"), LOCAL, {"broken": 1, "junk_lines": ["{"]}, "no JSON-RPC", "one line"),
    ],
)
def test_each_error_has_a_cause_and_what_to_do(error, aim, seen, said, todo):
    cause = cause_of(error, aim, Evidence(**seen))
    assert said in cause.said and todo in cause.todo


def test_a_silent_process_that_complains_is_quoted():
    error = errors.CallTimeout("open", 2, "connect")
    error.stderr = "waiting for database"
    assert "on stderr: waiting for database" in cause_of(error, LOCAL, Evidence()).said


@pytest.mark.parametrize(
    ("stderr", "line", "todo"),
    [
        ("Traceback:\n  x\nModuleNotFoundError: No module named 'httpx'", "ModuleNotFoundError", "the module httpx"),
        ("Error: Cannot find module '/x/index.js'\n at y", "Cannot find module", "/x/index.js"),
        ("  File x\nSyntaxError: invalid syntax", "SyntaxError", "does not compile"),
        ("OSError: [Errno 98] Address already in use", "Errno 98", "port is taken"),
        ("KeyError: 'GITHUB_TOKEN'", "KeyError", "a variable (GITHUB_TOKEN)"),
        ("Error: API_KEY environment variable must be set", "API_KEY", "a variable (API_KEY)"),
        ("open: Permission denied", "Permission denied", "who owns"),
        ("python: can't open file 'server.py'", "can't open", "full paths"),
        ("something \x1b[31modd", "something \\x1b[31modd", ""),
    ],
)
def test_last_words_are_understood(stderr, line, todo):
    said, what = last_words(stderr)
    assert line in said and todo in what and said.isprintable()


def test_a_process_that_said_nothing_has_no_last_words():
    assert last_words(" \n") is None


def untrusted():
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "tls", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), False, "no such host (Name or service not known)"),
        (UnicodeError("label"), False, "no such host"),
        (untrusted(), True, "not trusted: certificate has expired"),
        (ssl.SSLError(1, "wrong"), True, "no TLS there"),
        (ConnectionRefusedError(111, "no"), True, "nobody listens"),
        (ConnectionResetError(104, "no"), True, "instead of TLS"),
        (ConnectionResetError(104, "reset"), False, "no connection: reset"),
        (TimeoutError(), False, "nobody answers there"),
        (OSError(101, "Network is unreachable"), False, "no connection: Network is unreachable"),
    ],
)
def test_no_connection_has_a_reason(error, tls, said):
    assert said in unreachable(error, tls).said


def test_only_what_answers_may_stand_elsewhere():
    assert is_elsewhere(errors.HttpStatus("x", 404)) and is_elsewhere(errors.HandshakeFailed("x"))
    assert not is_elsewhere(errors.HttpStatus("x", 500)) and not is_elsewhere(TIMEOUT)
    assert not is_elsewhere(errors.ConnectionLost("x"))


@pytest.mark.parametrize(
    "error", [errors.SpawnFailed("x"), errors.PeerClosed("x"), errors.CallTimeout("open", 2, "connect")]
)
def test_a_start_that_fails_names_the_variables_that_were_withheld(error):
    error.withheld = ("SOME_TOKEN", "OTHER_HOME")
    todo = cause_of(error, LOCAL, Evidence()).todo
    assert todo.endswith("not given: SOME_TOKEN, OTHER_HOME; pass those it needs with --env NAME")
