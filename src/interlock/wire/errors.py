"""Every error of Interlock, split first by whose fault it is.

::

    InterlockError
    ├── LocalError                    we were misused; nothing went over the wire
    │   ├── NotOpen                   a call on something that is not (or no longer) open
    │   ├── MessageTooLarge           a message of ours is over the limit
    │   ├── CallTimeout               our own deadline passed (the peer was told to stop)
    │   ├── SpawnFailed               the program could not be started
    │   ├── LoginRequired             a user must log in, and nobody may be asked here
    │   └── StoreError                what must last could not be kept or read
    │       ├── StoreFull             there is no room: nothing was written
    │       ├── Fenced                somebody newer writes here: nothing was written
    │       └── EventsGone            events that were asked for are not kept any more
    ├── RemoteError                   the peer broke the rules of the protocol
    │   ├── BadFrame                  bytes that are no JSON-RPC message
    │   ├── BadResult                 an answer that is not what the method promises
    │   ├── EndlessList               pages without end, or more of them than anybody could hold
    │   ├── HttpStatus (status)       an HTTP status in the place of a message
    │   │   └── AuthRequired          401, or 403 with a challenge: credentials are missing or not enough
    │   ├── AuthorizationFailed (error)  no token: refused, or what was answered cannot be trusted
    │   └── HandshakeFailed           the server and we did not come to terms about how to talk
    │       └── NoCommonRevision      no revision that both sides speak
    ├── Refused (code, data)          one side said no; raise it in a handler, catch it at a call
    │   ├── ParseError                -32700
    │   ├── InvalidRequest            -32600
    │   ├── MethodNotFound            -32601
    │   ├── InvalidParams             -32602
    │   │   └── ResourceNotFound      -32602, -32002 in the handshake revisions
    │   ├── InternalError             -32603
    │   ├── HeaderMismatch            -32020
    │   ├── CannotAsk                 -32021, -32601 in the handshake revisions
    │   ├── UnsupportedVersion        -32022
    │   └── UrlElicitationRequired    -32042, in the last handshake revision only
    ├── ConnectionEnded               the connection is gone
    │   ├── ConnectionClosed          we closed it
    │   ├── ConnectionLost (sent)     it broke, or the peer stopped answering
    │   └── PeerClosed                the peer ended it (exit code, tail of stderr)
    │       └── SessionGone           over HTTP: the server has forgotten the session
    └── ToolError                     a tool's own failure, written by its author for the model

Whatever helps is in the same place of every error: `hint` says what to do, `__cause__` what was behind it, `exit_code`
and `stderr` how the server process ended and what it said last, where there is one, `withheld` which variables of the
environment it was not given, where it did not start.

A timeout of ours and an error that the peer sent can never be confused: the first is a `LocalError`,
the second a `Refused` (basic/index#error-codes asks for that).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from .escaping import display

__all__ = [
    "InterlockError",
    "LocalError",
    "NotOpen",
    "MessageTooLarge",
    "CallTimeout",
    "SpawnFailed",
    "LoginRequired",
    "StoreError",
    "StoreFull",
    "Fenced",
    "EventsGone",
    "RemoteError",
    "BadFrame",
    "BadResult",
    "EndlessList",
    "HttpStatus",
    "AuthRequired",
    "AuthorizationFailed",
    "HandshakeFailed",
    "NoCommonRevision",
    "Refused",
    "ParseError",
    "InvalidRequest",
    "MethodNotFound",
    "InvalidParams",
    "ResourceNotFound",
    "InternalError",
    "HeaderMismatch",
    "CannotAsk",
    "UnsupportedVersion",
    "UrlElicitationRequired",
    "ConnectionEnded",
    "ConnectionClosed",
    "ConnectionLost",
    "PeerClosed",
    "SessionGone",
    "ToolError",
    "refusal",
]


class InterlockError(Exception):
    """The root of the tree above."""

    hint: str | None = None
    """What to do about it."""
    exit_code: int | None = None
    """Of the server process, if it has ended."""
    stderr: str = ""
    """The last that the server process wrote there."""
    withheld: tuple[str, ...] = ()
    """Names of variables of the user's environment that a server process that did not start was not given."""

    def describe_withheld(self, way: str = "in `env`") -> str:
        """The same in a sentence, which names the `way` to pass them; empty where there are none."""
        if not self.withheld:
            return ""
        names = ", ".join(self.withheld)
        return f"variables of your environment that it was not given: {names}; pass those it needs {way}"

    def summarize(self) -> str:
        """One line: what happened, the last line that the server process wrote, and what it was not given. The process
        chooses the words: escape them before they are shown."""
        lines = (line.strip() for line in reversed(self.stderr.splitlines()))
        last = next((line for line in lines if any(map(str.isalnum, line))), "")  # not the frame of an exception group
        said = (str(self).partition("\n")[0], last and f"it wrote last: {last}", self.describe_withheld())
        return "; ".join(filter(None, said))

    def explain(self) -> str:
        """All that is known, for people: several lines."""
        said = [str(self)]
        cause = self.__cause__
        if cause is not None and str(cause) not in said[0]:
            told = str(cause.args[0]) if isinstance(cause, InterlockError) and cause.stderr else str(cause)
            said.append(f"because of: {display(told or type(cause).__name__, 500)}")
        if self.hint:
            said.append(f"hint: {self.hint}")
        if self.exit_code is not None and str(self.exit_code) not in said[0]:
            said.append(f"exit code of the server process: {self.exit_code}")
        if self.stderr and self.stderr not in said[0]:
            said.append(f"--- the last lines of its stderr ---\n{self.stderr}")
        if self.withheld and self.describe_withheld() not in said[0]:
            said.append(f"--- {self.describe_withheld()} ---")
        return "\n".join(said)


# --- ours -----------------------------------------------------------------------------------------


class LocalError(InterlockError):
    """This side was used wrongly, or gave up by its own decision."""


class NotOpen(LocalError):
    """The connection is not open: enter the context manager, or await `open()`."""

    hint = "use `async with Client(...) as client`, or await client.open() first"


class MessageTooLarge(LocalError):
    """A message of ours is larger than the limit of its carrier."""

    hint = "send less at once, or raise Limits(message_bytes=...) on both sides"


class CallTimeout(LocalError, TimeoutError):
    """Our deadline passed without an answer. The peer was told, its outcome is unknown."""

    hint = "give it longer with timeout=, or let the server report progress, which counts as a sign of life"

    def __init__(self, method: str, seconds: float, which: Literal["idle", "total", "connect"]) -> None:
        super().__init__(f"{method}: no answer within the {which} deadline of {seconds:g} s")
        self.method, self.seconds, self.which = method, seconds, which


class SpawnFailed(LocalError):
    """The server program could not be started."""

    hint = "run the same command in a terminal; a server finds only what Command(env=, env_policy=, cwd=) lets it see"


class LoginRequired(LocalError):
    """The server wants a user to log in, and this client has nobody to ask, or is told not to."""

    hint = 'log in once with login="browser" or "paste" and the same tokens=, or give client_id='


class StoreError(LocalError):
    """The store could not do what was asked: its file is damaged, locked, replaced or not ours to write, or its disk is
    full."""


class StoreFull(StoreError):
    """A bound of the store is reached (state/store.py says which), and nothing that lives is thrown out."""


class Fenced(StoreError):
    """Somebody with a newer fence has taken this stream over."""


class EventsGone(StoreError):
    """The events after this id are not, or no longer, those of the stream."""


# --- theirs ---------------------------------------------------------------------------------------


class RemoteError(InterlockError):
    """The peer broke a rule of the protocol."""


class BadFrame(RemoteError):
    """Bytes that are no JSON-RPC message: what a server answers, the id that could be read, and, when it was
    meant as a response, the call it `answers`."""

    def __init__(
        self, refusal: Refused | None, id: int | str | None = None, *, answers: int | str | None = None
    ) -> None:
        super().__init__(str(refusal) if refusal else "malformed notification or response")
        self.refusal, self.id, self.answers = refusal, id, answers


class BadResult(RemoteError):
    """The answer is not of the shape that the method promises."""


class EndlessList(RemoteError):
    """A list whose cursors come back or never end, or that is larger than any bound."""


class HttpStatus(RemoteError):
    """The server, or something before it, gave an HTTP status and no JSON-RPC message. What it asks for beside
    the status is kept: `challenge` is its WWW-Authenticate, `retry_after` its Retry-After, both as they came. `body`
    is how the body of the refusal begins, on one line and escaped."""

    def __init__(
        self,
        message: str,
        status: int,
        *,
        challenge: str | None = None,
        retry_after: str | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.challenge, self.retry_after, self.body = status, challenge, retry_after, body


class AuthRequired(HttpStatus):
    """Credentials are missing, expired, or not enough. `challenge` says what the server wants."""

    hint = "get tokens with auth=OAuth(), or give them with headers={'Authorization': ...}, to the client or one call"


class AuthorizationFailed(RemoteError):
    """No token was to be had. `error` is the code of OAuth when an authorization server refused (`invalid_grant`,
    `access_denied`, ...), None when what came cannot be trusted: then nothing of it was used."""

    def __init__(self, message: str, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class HandshakeFailed(RemoteError):
    """The server answered, and not with anything that could be the beginning of a conversation."""

    hint = "check that the target is an MCP server, and that nothing else writes to its stdout"


class NoCommonRevision(HandshakeFailed):
    """Both sides are healthy and share no revision."""

    hint = "leave revision= out, or name one that the server speaks"

    def __init__(self, message: str, offered: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.offered = offered


# --- said no --------------------------------------------------------------------------------------


class Refused(InterlockError):
    """An error object of JSON-RPC, on its way out (raised by a handler) or in (raised by a call)."""

    code: int = -32603
    standard: ClassVar[int | None] = None  # the code this class stands for

    def __init__(self, message: str, data: Any = None, *, code: int | None = None) -> None:
        super().__init__(message)
        self.message, self.data = message, data
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        """For people: a peer's message may hold anything; `message` has it as it came."""
        return display(self.message)


class ParseError(Refused):
    code = standard = -32700


class InvalidRequest(Refused):
    code = standard = -32600


class MethodNotFound(Refused):
    code = standard = -32601


class InvalidParams(Refused):
    code = standard = -32602


class ResourceNotFound(InvalidParams):
    """No resource of that URI."""

    standard = None

    def __init__(self, message: str, data: Any = None, *, code: int | None = None) -> None:
        super().__init__(message, data, code=code)
        self.uri: str | None = data.get("uri") if isinstance(data, dict) else None  # pyright: ignore


class InternalError(Refused):
    code = standard = -32603


class HeaderMismatch(Refused):
    code = standard = -32020


class CannotAsk(Refused):
    """The client did not declare what this request needs of it, or its revision has no such question."""

    code = standard = -32021
    hint = "a client answers only what it was given answers for: Client(elicit=, elicit_url=, sample=, roots=)"


class UnsupportedVersion(Refused):
    code = standard = -32022


class UrlElicitationRequired(Refused):
    code = standard = -32042


def _standard_codes() -> dict[int, type[Refused]]:
    return {kind.standard: kind for kind in Refused.__subclasses__() if kind.standard is not None}


CLASS_OF: dict[int, type[Refused]] = _standard_codes()


def refusal(code: int, message: str, data: Any = None, classes: dict[int, type[Refused]] = CLASS_OF) -> Refused:
    """The error object of a peer as an exception; unknown codes stay plain `Refused`."""
    return classes.get(code, Refused)(message, data, code=code)


# --- the connection is gone -----------------------------------------------------------------------


class ConnectionEnded(InterlockError, ConnectionError):
    """The connection ended before the answer came."""

    sent: bool | None = None
    """Did any byte of this request leave? False: provably not; True: at least partly; None: unknown."""

    def for_call(self, method: str, sent: bool | None) -> ConnectionEnded:
        """The same end, told to one waiting call."""
        told = type(self).__new__(type(self))
        told.__dict__.update(self.__dict__)
        told.args = (f"{method}: {self.args[0]}",)
        told.sent = sent
        told.__cause__ = self
        return told


class ConnectionClosed(ConnectionEnded):
    """This side closed the connection."""


class ConnectionLost(ConnectionEnded):
    """The connection broke, or the peer stopped answering."""

    hint = "the next call connects anew; repeat this one only if `sent` is False or doing it twice does no harm"


class PeerClosed(ConnectionEnded):
    """The peer ended the connection; for a child process with its exit code and the tail of its stderr."""

    hint = "look at the stderr of the server; the next call starts it anew"

    def __init__(self, message: str, *, exit_code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.exit_code, self.stderr = exit_code, stderr

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += ["--- the last lines of its stderr ---", self.stderr.rstrip("\n")] if self.stderr else []
        lines += [f"--- {withheld} ---"] if (withheld := self.describe_withheld()) else []
        return "\n".join(lines)


class SessionGone(PeerClosed):
    """The server does not know the session any more. `sent` is False for the call that was turned away unread."""


class ToolError(InterlockError):
    """Raise it in a tool: the text goes to the model as a result with `isError`."""
