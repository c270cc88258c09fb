"""The steps of `interlock doctor`, from the name of a server to its last word. Each says what it found and what to do.

A step that fails so that nothing can follow ends the examination; what was found until then stands.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from statistics import median
from time import monotonic
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from ...auth.client.driver import drive
from ...auth.client.providers import OAuth
from ...auth.discovery import discover
from ...auth.urls import is_loopback
from ...auth.www_authenticate import demand_in
from ...client.client import Client
from ...client.config.entries import ServerEntry
from ...revisions.revision import Era
from ...revisions.table import pick
from ...transport.http.client.legacy_sse import SseSession
from ...transport.http.client.session_connection import HttpLine
from ...transport.stdio.child_process import Command
from ...web.outbound.endpoint import endpoint_of, label_of
from ...wire.errors import AuthorizationFailed, AuthRequired, InterlockError, LoginRequired, MethodNotFound, Refused
from ..commands.list import LISTS, list_one
from ..connect import can_log_in, client_of
from ..target import Aim
from ..terminal.output import one_line, quote_name
from ..terminal.wait_status import WaitStatus
from .diagnosis import Cause, cause_of, is_elsewhere, unreachable
from .lint import Remark, State, lint_prompts, lint_resources, lint_templates, lint_tools
from .process_monitor import Evidence, WatchedChild

__all__ = ["Checkup", "Finding"]

SLOW_OPENING, SLOW_ANSWER = 5.0, 1.0  # seconds
_PINGS = 3
_UNKNOWN_METHOD = "interlock/no-such-method"
_OTHER_PATHS = ("/mcp", "/mcp/", "/sse", "/")
_LOOK_SECONDS = 5.0  # for each of them


class Finding(msgspec.Struct, frozen=True):
    """What one step found."""

    step: str
    state: State
    said: str
    todo: str = ""
    remarks: list[Remark] = []


class _Over(Exception):
    """Nothing more can be found out."""


class Checkup:
    """One examination of one server. `tell` hears each finding as it is made."""

    def __init__(self, aim: Aim, options: dict[str, Any], tell: Callable[[Finding], None]) -> None:
        self._aim, self._options, self._tell = aim, options, tell
        self._status, self._limit = WaitStatus(), float(options["connect_timeout"])
        self._seen = Evidence()
        self.findings: list[Finding] = []
        self.wants_login = False

    async def run(self) -> list[Finding]:
        client: Client | None = None
        try:
            client = client_of(self._watched(), self._options)
            await self._target()
            await self._open(client)
            self._protocol(client)
            self._offers(client)
            self._anybody()
            await self._lists(client)
            await self._unknown_method(client)
            await self._timing(client)
        except _Over:
            pass
        finally:
            if client is not None:
                await self._end(client)
        self._stdout()
        return self.findings

    def _found(self, step: str, state: State, said: str, todo: str = "", remarks: list[Remark] | None = None) -> None:
        finding = Finding(step, state, said, todo, remarks or [])
        self.findings.append(finding)
        self._tell(finding)

    def _waiting_for(self, what: str) -> AbstractAsyncContextManager[None]:
        return self._status.waiting_for(what, self._limit)

    # --- to the server ----------------------------------------------------------------------------

    @property
    def _command(self) -> Command | None:
        target = self._aim.target
        if isinstance(target, ServerEntry):
            return None if self._aim.is_remote else target.command()
        return target if isinstance(target, Command) else None

    @property
    def _url(self) -> tuple[str, dict[str, str]]:
        target = self._aim.target
        url, own = target.address() if isinstance(target, ServerEntry) else (str(target), {})
        return url, {**own, **(self._options.get("headers") or {})}

    def _place(self, host: str) -> tuple[str, bool]:
        """What findings call the host; True where that is how the configuration writes it."""
        target = self._aim.target
        if isinstance(target, ServerEntry):
            resolved = target.resolve()
            label = label_of(resolved.shown_url)
            if label != label_of(resolved.address()[0]):
                return one_line(label, 200), True
        return one_line(host, 100), False

    def _watched(self) -> Aim:
        command = self._command
        if command is None:
            return self._aim
        return msgspec.structs.replace(self._aim, target=lambda: WatchedChild(command, self._seen))

    async def _target(self) -> None:
        command = self._command
        if command is not None:
            self._program(command)
        elif self._aim.is_remote:
            await self._host(self._url[0])
        else:
            self._found("target", "ok", self._aim.name)

    def _program(self, command: Command) -> None:
        """Found as it will be: by the PATH that the server's process gets."""
        name = command.args[0] if command.args else ""
        if command.cwd is not None and not os.path.isdir(command.cwd):
            shown = one_line(command.hidden(command.cwd))
            self._found("target", "fail", f"there is no folder {shown!r}", "check --cwd")
            raise _Over
        found = shutil.which(name, path=command.environment().get("PATH"))
        if found is None and os.sep not in name:
            todo = "install it, or give its full path; aliases and functions of a shell do not count here"
            self._found("target", "fail", f"there is no program {one_line(command.program, 100)!r} on PATH", todo)
            raise _Over
        self._found("target", "ok", f"started by {one_line(command.program if command.shown else found or name)}")

    async def _host(self, url: str) -> None:
        """Its name, its port and, where it is https, its certificate: before any request."""
        parts = urlsplit(url)
        host, tls = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if tls else 80)
        name, is_looked_up = self._place(host)
        place = name if is_looked_up else f"{name} port {port}"
        try:
            async with self._waiting_for(place), asyncio.timeout(self._limit):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
                version = await _connected(host, port, tls)
        except (OSError, UnicodeError) as error:
            cause = unreachable(error, tls)
            self._found("target", "fail", f"{place}: {cause.said}", cause.todo)
            raise _Over from None
        addresses = [] if is_looked_up else sorted({str(each[4][0]) for each in found})[:3]
        about = ", ".join([*addresses, version] if version else addresses)
        said = f"{place} answers" + (f" ({about})" if about else "")
        self._found("target", "ok", said)

    async def _open(self, client: Client) -> None:
        began, what = monotonic(), "the server to start and answer" if self._command else "the server to answer"
        try:
            async with nullcontext() if can_log_in(self._options) else self._waiting_for(what):
                await client.open()
        except InterlockError as error:
            await self._not_opened(error)
            raise _Over from None
        self._seconds = monotonic() - began
        how = _carrier(client) if self._aim.is_remote else "over stdio"
        state: State = "warn" if how == "over HTTP+SSE" else "ok"
        todo = (
            "this transport is deprecated: many clients have dropped it, serve Streamable HTTP" if state != "ok" else ""
        )
        self._found("connection", state, f"opened {how} in {self._seconds:.2f} s", todo)

    async def _not_opened(self, error: InterlockError) -> None:
        cause = cause_of(error, self._aim, self._seen)
        if isinstance(error, AuthRequired | LoginRequired | AuthorizationFailed):
            self.wants_login = True
            status = f"with HTTP status {error.status}" if isinstance(error, AuthRequired) else "and wants a login"
            self._found("connection", "ok", f"it answers, {status}")
            async with self._waiting_for("what the server says about logins"):
                told = await self._who_grants(error)
            self._found("auth", "fail", *told)
            return
        if self._aim.is_remote and is_elsewhere(error):
            async with self._waiting_for("other paths of the same server"):
                elsewhere = await self._elsewhere()
            if elsewhere is not None:
                cause = Cause(cause.said, f"there is an MCP server at {one_line(elsewhere)}: give that URL")
        self._found("connection", "fail", cause.said, cause.todo)

    async def _who_grants(self, error: AuthRequired | LoginRequired | AuthorizationFailed) -> tuple[str, str]:
        """Where tokens come from. A client that keeps tokens has read the challenge itself: it is not known here."""
        url, headers = self._url
        endpoint = endpoint_of(url, headers, allowed_hosts=self._options.get("allowed_hosts", ()))
        wanted = "it wants a token" if not headers else "it wants another token"
        if isinstance(error, AuthorizationFailed):
            wanted = f"getting a token failed ({one_line(str(error).partition(chr(10))[0], 200)}): {wanted}"
        demand = demand_in(error.challenge if isinstance(error, AuthRequired) else None)
        try:
            found = await drive(discover(url, demand, may_be_own=False), OAuth(login=None), endpoint)
        except InterlockError as why:
            todo = (
                "serve /.well-known/oauth-protected-resource with authorization_servers, and name it in "
                "WWW-Authenticate (RFC 9728); until then only a token you have helps: --bearer VARIABLE"
            )
            return f"{wanted}, and nobody can find out where to get one: {one_line(str(why), 200)}", todo
        return f"{wanted}, which {one_line(found.issuer)} grants", "log in: --auth browser, or --bearer VARIABLE"

    async def _elsewhere(self) -> str | None:
        """Where the endpoint is, if it stands at one of the usual paths of the same server."""
        url = urlsplit(self._url[0])
        limits = {"timeout": _LOOK_SECONDS, "connect_timeout": _LOOK_SECONDS, "probe_timeout": _LOOK_SECONDS / 2}
        for path in _OTHER_PATHS:
            if path == url.path:
                continue
            other = urlunsplit((url.scheme, url.netloc, path, "", ""))
            client = client_of(Aim("url", other, other), {**self._options, **limits})
            name, is_looked_up = self._place("")
            shown = f"{name}{path}" if is_looked_up else other
            try:
                await client.open()
                return shown
            except (AuthRequired, LoginRequired):
                return shown
            except InterlockError:
                pass
            finally:
                await client.close()
        return None

    # --- what it is -------------------------------------------------------------------------------

    def _protocol(self, client: Client) -> None:
        info, row = client.server_info, pick(None)[client.revision]
        era = "stateless" if row.era is Era.STATELESS else "handshake"
        said = f"{client.revision} ({era}), {quote_name(info.name, 60)} {quote_name(info.version, 40)}"
        anonymous = not info.name.strip() or not info.version.strip()
        todo = "give the server a name and a version: hosts show them" if anonymous else ""
        self._found("protocol", "warn" if anonymous else "ok", said, todo)

    def _offers(self, client: Client) -> None:
        found = [
            name
            for name in ("tools", "resources", "prompts", "completions", "logging")
            if client.capabilities.can(name)
        ]
        if any(name in found for name in ("tools", "resources", "prompts")):
            self._found("offers", "ok", ", ".join(found))
        else:
            told = "neither tools nor resources nor prompts"
            self._found(
                "offers", "warn", told, "declare the capabilities of what the server has: clients ask for no more"
            )

    def _anybody(self) -> None:
        if not self._aim.is_remote:
            return
        url, headers = self._url
        sent = any(name.lower() == "authorization" for name in headers)
        if sent or self._options.get("auth") is not None:
            self._found("auth", "ok", "it takes the token" if sent else "it takes us, with a token if it wants one")
        elif is_loopback(urlsplit(url).hostname or ""):
            self._found("auth", "ok", "none, and it is on this machine")
        else:
            todo = "protect it, if that is not meant: docs/authorization.md"
            self._found("auth", "warn", "none: everybody who reaches it can use it", todo)

    # --- what it lists ----------------------------------------------------------------------------

    async def _lists(self, client: Client) -> None:
        era = pick(None)[client.revision].era
        lints: dict[str, Callable[[list[Any]], Any]] = {
            "tools": lambda items: lint_tools(items, objects_only=era is Era.HANDSHAKE),
            "resources": lint_resources,
            "templates": lint_templates,
            "prompts": lint_prompts,
        }
        for kind in LISTS:
            if client.capabilities.can("resources" if kind == "templates" else kind):
                await self._list(client, kind, lints[kind])

    async def _list(self, client: Client, kind: str, lint: Callable[[list[Any]], Any]) -> None:
        began = monotonic()
        try:
            async with self._waiting_for(LISTS[kind].method):
                items = await list_one(client, kind)
        except InterlockError as error:
            todo = f"it declares {kind}: {LISTS[kind].method} must answer"
            self._found(kind, "fail", one_line(str(error).partition("\n")[0], 400), todo)
            return
        remarks: list[Remark] = sorted(lint(items), key=lambda remark: remark.state)  # what fails stands first
        states = {remark.state for remark in remarks}
        state: State = "fail" if "fail" in states else "warn" if "warn" in states else "ok"
        said = f"{len(items)} in {monotonic() - began:.2f} s" + (f", {len(remarks)} to mend" if remarks else "")
        self._found(kind, state, said, remarks=remarks)

    async def _unknown_method(self, client: Client) -> None:
        todo = "answer methods you do not know with -32601: clients find out by it what you can"
        try:
            async with self._status.waiting_for("the answer to an unknown method", _LOOK_SECONDS):
                await client.request(_UNKNOWN_METHOD, timeout=_LOOK_SECONDS)
            self._found("errors", "warn", "a method that does not exist is answered as if it did", todo)
        except MethodNotFound:
            self._found("errors", "ok", "a method that does not exist is refused with -32601")
        except Refused as error:
            self._found("errors", "warn", f"a method that does not exist is refused with {error.code}", todo)
        except InterlockError as error:
            self._found("errors", "fail", f"a method that does not exist: {one_line(error.summarize(), 300)}", todo)

    # --- how fast, and how it ends ----------------------------------------------------------------

    async def _timing(self, client: Client) -> None:
        times: list[float] = []
        try:
            for _ in range(_PINGS):
                began = monotonic()
                async with self._waiting_for("a ping"):
                    await client.ping()
                times.append(monotonic() - began)
        except InterlockError as error:
            self._found(
                "timing", "fail", f"a ping fails: {one_line(error.summarize(), 300)}", "answer pings at any time"
            )
            return
        answer = median(times)
        said = f"opened in {self._seconds:.2f} s, an answer takes {answer * 1000:.1f} ms"
        if self._seconds > SLOW_OPENING:
            self._found("timing", "warn", said, "it starts slowly: hosts give up after some seconds, load things later")
        elif answer > SLOW_ANSWER:
            self._found("timing", "warn", said, "it answers slowly: does something block its event loop?")
        else:
            self._found("timing", "ok", said)

    async def _end(self, client: Client) -> None:
        opened = any(finding.step == "protocol" for finding in self.findings)
        command = self._command
        patience = command.close_seconds + command.terminate_seconds if command is not None else self._limit
        began = monotonic()
        async with self._status.waiting_for("the server to end", patience):
            await client.close()
        took = monotonic() - began
        if not opened or command is None:
            return
        if was_stopped(command, took):
            todo = "end when stdin ends: hosts kill what does not, and nothing is saved then"
            self._found(
                "end", "warn", f"it did not end when its stdin was closed, and was stopped after {took:.1f} s", todo
            )
        else:
            self._found("end", "ok", f"it ended {took:.2f} s after its stdin was closed")

    def _stdout(self) -> None:
        """Whoever got through in spite of it will not get through everywhere."""
        if self._seen.junk and self._seen.messages:
            shown = "; ".join(repr(one_line(line, 80)) for line in self._seen.junk_lines[:2])
            told = f"{self._seen.junk} lines on stdout are no messages: {shown}"
            todo = "write them to stderr: stdout belongs to the protocol, and other clients give up at such lines"
            self._found("stdout", "fail", told, todo)


def was_stopped(command: Command, took: float) -> bool:
    """Did it outlast the time after which it is told to terminate?"""
    return took >= command.close_seconds


async def _connected(host: str, port: int, tls: bool) -> str:
    """The version of TLS, where there is any."""
    _, writer = await asyncio.open_connection(host, port, ssl=tls)
    try:
        session: Any = writer.get_extra_info("ssl_object")
        return session.version() if session is not None else ""
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # what was aborted is closed in the next turn


def _carrier(client: Client) -> str:
    """Which of the HTTP transports was found."""
    link = client._open_edge().link  # pyright: ignore[reportPrivateUsage] - how it travels is nobody else's business
    if not isinstance(link, HttpLine):
        return "over Streamable HTTP"
    posting = link._posting  # pyright: ignore[reportPrivateUsage]
    return "over HTTP+SSE" if isinstance(posting, SseSession) else "over Streamable HTTP, with a session"
