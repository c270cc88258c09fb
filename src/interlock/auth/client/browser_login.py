"""Getting a user to log in, and hearing of it: a browser that comes back to this machine, or a URL that is pasted.

The listener is open to every page that the user has open, so a request counts only when it is the one that is waited
for: right path, right host, right state. Any other is answered and forgotten; it neither settles nor ends the login.
"""

from __future__ import annotations

import asyncio
import hmac
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from ...wire.errors import AuthorizationFailed, LocalError, LoginRequired
from ..urls import is_loopback
from .providers import OAuth

__all__ = ["Login", "Loopback", "Pasted", "Called", "login_of"]

_MOST_HEAD = 16 * 1024  # bytes of a request to the listener; a longer one is dropped
_HEAD_WITHIN = 5.0  # seconds it may take
_MOST_AT_ONCE = 32  # connections to the listener; a further one takes the place of the oldest
_PASTED_TO = "http://127.0.0.1:33418/callback"  # where nobody listens: the user copies it from the address bar
_PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n"
    "Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\r\n"
)
_DONE = "<!doctype html><title>Back to the program</title><p>You can close this page and go back to the program."
_WRONG = "<!doctype html><title>Nothing here</title><p>This is not the answer that is waited for."


class Login(Protocol):
    """One login: where the browser comes back to, then where it goes."""

    async def prepare(self, wanted: str | None) -> str: ...

    async def visit(self, url: str, state: str) -> str: ...

    async def close(self) -> None: ...


def login_of(plan: OAuth) -> Login:
    if plan.login == "browser":
        return Loopback()
    if plan.login == "paste":
        return Pasted()
    if callable(plan.login):
        return Called(plan.login)
    raise LoginRequired("the server wants a user to log in, and login=None says that nobody is to be asked")


class Called:
    """The owner's own function: from the URL to the one that the browser came back with."""

    def __init__(self, ask: Callable[[str], Awaitable[str]]) -> None:
        self._ask = ask

    async def prepare(self, wanted: str | None) -> str:
        assert wanted is not None  # a plan with a function has a redirect URI
        return wanted

    async def visit(self, url: str, state: str) -> str:
        return await self._ask(url)

    async def close(self) -> None:
        """Nothing is open."""


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - a person has to see it


def _read() -> str:
    return sys.stdin.readline()


class Pasted:
    """For machines without a browser: the URL is shown, and the user brings back the one he was redirected to."""

    def __init__(self, say: Callable[[str], None] = _say, read: Callable[[], str] = _read) -> None:
        self._say, self._read = say, read

    async def prepare(self, wanted: str | None) -> str:
        return wanted or _PASTED_TO

    async def visit(self, url: str, state: str) -> str:
        self._say(f"Open this URL, log in, and paste the URL you are sent to (its page may not load):\n\n{url}\n")
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()

        def wait() -> None:  # a thread of its own: nobody can stop one that reads from a terminal
            text = self._read()
            with suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(lambda: line.done() or line.set_result(text))

        threading.Thread(target=wait, name="interlock-handler-paste", daemon=True).start()
        answer = (await line).strip()
        if not answer:
            raise AuthorizationFailed("no URL was pasted: log in at the URL above, then paste the one you are sent to")
        return answer

    async def close(self) -> None:
        """Nothing is open."""


def _browse(url: str) -> bool:
    """By the means of the platform, never by a shell (SEC-015)."""
    import webbrowser

    return webbrowser.open(url)


class Loopback:
    """A listener on this machine, on a port of its own, for one answer."""

    def __init__(self, browse: Callable[[str], bool] = _browse, say: Callable[[str], None] = _say) -> None:
        self._browse, self._say = browse, say
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[asyncio.Task[None], asyncio.WriteTransport] = {}  # in the order in which they came
        self._redirect = ""
        self._state: bytes | None = None
        self._answer: asyncio.Future[str] | None = None

    async def prepare(self, wanted: str | None) -> str:
        """The port of the last time, if it is free: some servers compare it. Else any."""
        parts = urlsplit(wanted) if wanted is not None else None
        if parts is not None and (parts.scheme != "http" or not is_loopback(parts.hostname or "")):
            raise LocalError(
                "a browser comes back to another machine: say with a function for login= how you hear of it"
            )
        host, path = ("127.0.0.1", "/callback") if parts is None else (parts.hostname or "", parts.path or "/")
        at = "::1" if host == "::1" else "127.0.0.1"
        try:
            self._server = await asyncio.start_server(self._connected, at, parts.port or 0 if parts else 0)
        except OSError:
            self._server = await asyncio.start_server(self._connected, at, 0)
        port = self._server.sockets[0].getsockname()[1]
        self._redirect = f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
        return self._redirect

    async def visit(self, url: str, state: str) -> str:
        self._state = state.encode()
        self._answer = asyncio.get_running_loop().create_future()
        if not await asyncio.to_thread(self._browse, url):
            self._say(f"Open this URL to log in:\n\n{url}\n")
        return await self._answer

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # sockets that were let go of are closed in the next turn

    # --- one request to the listener --------------------------------------------------------------

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Who holds connections and says nothing does not keep out the one who is waited for."""
        if len(self._open) >= _MOST_AT_ONCE:
            self._open.pop(next(iter(self._open))).abort()  # who reads from it ends with that
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        self._open[task] = writer.transport
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._open.pop(task, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_WITHIN):
                head = await reader.readuntil(b"\r\n\r\n")
                answer = self._answer_in(head[:_MOST_HEAD]) if len(head) <= _MOST_HEAD else None
                page = (_DONE if answer is not None else _WRONG).encode()
                status = "200 OK" if answer is not None else "400 Bad Request"
                writer.write(_PAGE.format(status=status, length=len(page)).encode() + page)
                writer.close()
                await writer.wait_closed()  # the page is there before anybody goes on
            if answer is not None and self._answer is not None and not self._answer.done():
                self._answer.set_result(answer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # somebody who does not speak HTTP, or went away: not the one who is waited for
        finally:
            writer.transport.abort()

    def _answer_in(self, head: bytes) -> str | None:
        """The URL of the request, when it is the answer; nothing of it is shown on the page."""
        lines = head.decode("latin-1").split("\r\n")
        verb, _, rest = lines[0].partition(" ")
        target = rest.partition(" ")[0]
        path, _, query = target.partition("?")
        here = urlsplit(self._redirect)
        hosts = {line.partition(":")[2].strip().lower() for line in lines[1:] if line.lower().startswith("host:")}
        if verb != "GET" or path != here.path or hosts != {here.netloc} or self._state is None:
            return None
        try:
            states = parse_qs(query, max_num_fields=64).get("state", [])
        except ValueError:
            return None
        if len(states) != 1 or not hmac.compare_digest(states[0].encode("utf-8", "replace"), self._state):
            return None
        return f"{self._redirect}?{query}"
