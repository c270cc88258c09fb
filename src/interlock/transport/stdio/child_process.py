"""A server as a child process: its streams as a channel, its whole tree as ours to end.

An argument list, never a shell. The child leads a process group of its own; its death is seen by the kernel's
notice (a pidfd, or a waiting thread where there is none), not by the end of its output alone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...wire.channel import Receiver
from ...wire.errors import ConnectionClosed, PeerClosed, SpawnFailed
from ...wire.escaping import display
from ...wire.limits import DEFAULT_LIMITS, Limits
from ...wire.redaction import REDACTED, redact_url_passwords
from .environment import minimal_environment, proxy_secrets, withheld_variables
from .fd_streams import FdReader
from .line_channel import LineChannel
from .process_tree import MARK_VARIABLE, descendants, end_marked, end_strays, end_tree, kill_group, new_mark
from .stderr_excerpt import MAX_REPORT_BYTES, quote_stderr

__all__ = ["Command", "ChildChannel"]

log = logging.getLogger("interlock.client")
_LINES_SHOWN = 100  # of what a child writes to stderr at once


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server, and how patiently to end it."""

    args: tuple[str, ...]
    env: dict[str, str] | None = None
    env_policy: Literal["minimal", "inherit", "explicit"] = "minimal"
    """Beside `env`: what a program needs to run and to reach the network (`environment.py`), everything, or nothing."""
    cwd: str | None = None
    close_seconds: float = 2.0
    """After its stdin was closed, before it is told to terminate."""
    terminate_seconds: float = 2.0
    """After that, before the whole tree is killed."""
    hide: tuple[str, ...] = ()
    """Texts that no message of ours shows, neither of the command nor of the program's stderr."""
    shown: tuple[str, ...] = ()
    """The words as messages show them, where `args` hold texts that were looked up; empty: `args` themselves."""

    def __repr__(self) -> str:
        """Without the values of variables, and without what is hidden: it ends up in logs."""
        args = [self.hidden(argument) for argument in self.shown or self.args]
        return f"Command({args!r}, env={sorted(self.env or ())!r}, cwd={self.cwd and self.hidden(self.cwd)!r})"

    def hidden(self, text: str) -> str:
        """`text` as it may be shown."""
        for secret in _secrets_of(self):
            text = text.replace(secret, REDACTED)
        return redact_url_passwords(text)

    @property
    def program(self) -> str:
        """The first word as it may be shown."""
        return self.hidden((self.shown or self.args or ("",))[0])

    @staticmethod
    def of(args: Sequence[str], **options: Any) -> Command:
        return Command(args=tuple(args), **options)

    def environment(self) -> dict[str, str]:
        mine: Mapping[str, str] = {}
        if self.env_policy == "inherit":
            mine = os.environ
        elif self.env_policy == "minimal":
            mine = {"PYTHONUTF8": "1", **minimal_environment(os.environ)}
        return {**mine, **(self.env or {})}


def _secrets_of(command: Command) -> list[str]:
    """Texts that are replaced wherever something of the program is shown."""
    return [*command.hide, *proxy_secrets(command.environment())]


class _Tail:
    """The last bytes of a stream, always drained so that the child never blocks on it."""

    def __init__(self, size: int, command: Command | None = None) -> None:
        self._size = size
        self._command = command
        secrets = _secrets_of(command) if command is not None else ()
        longest = max((len(secret.encode("utf-8", "surrogateescape")) for secret in secrets), default=0)
        self._most = size + MAX_REPORT_BYTES + longest  # room for what is not quoted; no secret is cut in the middle
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        self._kept += chunk
        if len(self._kept) > self._most:
            del self._kept[: len(self._kept) - self._most]

    def text(self) -> str:
        """What an error quotes: control characters are escaped, line breaks stay."""
        text = self._kept.decode("utf-8", "replace")
        if self._command is not None:
            text = self._command.hidden(text)
        lines = quote_stderr(text)[-self._size :].splitlines()
        return "\n".join(display(line, self._size) for line in lines).strip()


class ChildChannel:
    """Starts the program when it is opened, ends its whole tree when it is closed."""

    def __init__(
        self,
        command: Command,
        limits: Limits = DEFAULT_LIMITS,
        *,
        on_stderr: Callable[[bytes], None] | None = None,
    ) -> None:
        self._command = command
        self._limits = limits
        self._on_stderr = on_stderr
        self._stderr = _Tail(limits.stderr_bytes, command)
        self._mark, self._marks = new_mark()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: LineChannel | None = None
        self._errors: FdReader | None = None
        self._exited: asyncio.Event = asyncio.Event()
        self._receiver: Receiver | None = None
        self._over = False
        self._closing: asyncio.Task[None] | None = None
        self._watch: _Watch | None = None
        self._release: weakref.finalize[..., ChildChannel] | None = None
        self._descriptors: list[int] = []  # what nobody has closed yet

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def hidden(self, text: str) -> str:
        """`text` of the program's as it may be shown."""
        return self._command.hidden(text)

    def stderr_tail(self) -> str:
        return self._stderr.text()

    def withheld(self, stderr: str) -> tuple[str, ...]:
        """Names of variables of this process that the program was not given and may need, by what it wrote."""
        return withheld_variables(os.environ, self._command.environment(), stderr)

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver
        process = self._process = self._spawn()
        # If nobody ever closes us, the group still goes when this object or the interpreter does.
        self._release = weakref.finalize(self, _give_up, os.getpid(), process.pid, self._mark, self._descriptors)
        assert process.stdin and process.stdout and process.stderr
        stdin, stdout, stderr = (os.dup(stream.fileno()) for stream in (process.stdin, process.stdout, process.stderr))
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        self._descriptors += [stdin, stdout, stderr]
        self._errors = FdReader(stderr, self._heard_stderr, lambda: None)
        self._errors.start()
        self._lines = LineChannel(stdout, stdin, self._limits, on_eof=self._stdout_ended, on_broken=self._stdin_broke)
        await self._lines.open(receiver)
        self._watch = _Watch(process, self._has_exited)
        if self._watch.descriptor >= 0:
            self._descriptors.append(self._watch.descriptor)

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = self._command
        if not command.args:
            raise SpawnFailed("an empty command: give the program and its arguments as a list")
        try:
            return subprocess.Popen(
                command.args,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**command.environment(), MARK_VARIABLE: self._marks},
                cwd=command.cwd,
                start_new_session=True,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            if isinstance(error, OSError) and error.filename is not None:  # the cause is shown, too
                is_program = error.filename == command.args[0]
                error.filename = command.program if is_program else command.hidden(str(error.filename))
            advice = ". Is it installed and on PATH?"
            if isinstance(error, UnicodeEncodeError):  # its own text would show the argument
                reason = f"an argument, a variable or the folder has characters that are not {error.encoding.upper()}"
                advice = ", the encoding of file names here: use a UTF-8 locale, or set PYTHONUTF8=1"
            failed = SpawnFailed(f"could not start {command.program!r}: {reason}{advice}")
            if "PATH" in os.environ and "PATH" not in command.environment():
                failed.withheld = ("PATH",)
            raise failed from error

    def _heard_stderr(self, chunk: bytes) -> None:
        self._stderr.add(chunk)
        if self._on_stderr is not None:
            self._on_stderr(chunk)
        elif log.isEnabledFor(logging.DEBUG):
            self._show(self._command.hidden(chunk.decode("utf-8", "replace")))

    def _show(self, said: str) -> None:
        """A record for each line, as people read tracebacks; the last ones of many, where the reason stands."""
        for line in said.splitlines()[-_LINES_SHOWN:]:
            log.debug("stderr of pid %s: %s", self.pid, display(line, 300))

    # --- its end ----------------------------------------------------------------------------------

    def _stdout_ended(self) -> None:
        """It closed its stdout: usually it is about to exit, so give the kernel a moment to tell how."""
        if not self._over and not self._exited.is_set():
            asyncio.get_running_loop().call_later(0.5, self._lost, "closed its stdout")

    def _stdin_broke(self, error: OSError) -> None:
        """It reads no more: usually it is about to exit too."""
        if not self._over and not self._exited.is_set():
            asyncio.get_running_loop().call_later(0.5, self._lost, "closed its stdin")

    def _has_exited(self) -> None:
        """Called while the child is a zombie: its group id cannot belong to anybody else yet."""
        process = self._process
        assert process is not None
        kill_group(process.pid)
        try:
            if self._lines is not None:
                self._lines.read_rest()  # answers it wrote right before the end
            if self._errors is not None:
                self._errors.read_rest()
        except Exception:
            log.exception("! handling the last words of pid %s failed", process.pid)
        if self._errors is not None:
            self._errors.close()
        if process.wait() < 0:
            end_marked(self._mark)  # killed: it could not end what it had detached
        self._descriptors.clear()
        if self._release is not None:
            self._release.detach()
        self._exited.set()
        self._lost(f"exited with code {process.returncode}")

    def _lost(self, what: str) -> None:
        if self._over:
            return
        self._over = True
        self._descriptors.clear()
        code = self._process.returncode if self._process else None
        name = os.path.basename(self._command.program)
        error = PeerClosed(f"the server process {name!r} {what}", exit_code=code, stderr=self._stderr.text())
        if self._lines is not None:
            self._lines.lose(error)

    # --- the channel ------------------------------------------------------------------------------

    @property
    def is_unread(self) -> bool:
        """True where it is known that the process has not read anything from its stdin, before its end or at it."""
        return self._lines is not None and self._lines.is_unread

    def send(self, message: bytes) -> int | None:
        assert self._lines is not None
        return self._lines.send(message)

    @property
    def delivered(self) -> int | None:
        return self._lines.delivered if self._lines else 0

    @property
    def backlog(self) -> int:
        return self._lines.backlog if self._lines else 0

    async def drain(self) -> None:
        if self._lines is not None:
            await self._lines.drain()

    def abandon(self) -> None:
        """Without a loop there is nobody to wait: end the group at once."""
        if self._release is not None:
            self._release()

    async def close(self) -> None:
        """Close stdin, wait, terminate, wait, kill: once, however many ask and whoever gives up waiting."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._over = True
        self._descriptors.clear()
        known = descendants(self._process.pid) if self._process is not None and not self._exited.is_set() else {}
        if self._lines is not None:
            await self._lines.finish()
            self._lines.close_input()
        if self._process is not None and not self._exited.is_set():
            patience = self._command.close_seconds, self._command.terminate_seconds
            await end_tree(self._process.pid, self._exited, *patience, known)
        elif known:
            end_strays(known)
        if self._watch is not None:
            self._watch.close()
        if self._errors is not None:
            self._errors.close()
        if self._lines is not None:
            self._lines.lose(ConnectionClosed("the connection was closed"))


def _give_up(owner: int, pid: int, mark: str, descriptors: list[int]) -> None:
    if os.getpid() != owner:
        return  # we are a fork of its owner, which still uses it
    kill_group(pid)
    end_marked(mark)
    for descriptor in descriptors:
        try:
            os.close(descriptor)
        except OSError:
            pass
    descriptors.clear()


class _Watch:
    """Calls back once the process has exited and before it is reaped."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._fd = -1
        try:
            self._fd = os.pidfd_open(process.pid)
            self._loop.add_reader(self._fd, self._ready)
        except (AttributeError, OSError, NotImplementedError):
            threading.Thread(target=self._wait, args=(process,), name="interlock-wait", daemon=True).start()

    def _ready(self) -> None:
        self.close()
        self._on_exit()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        try:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        except (AttributeError, OSError):
            process.wait()
        try:
            self._loop.call_soon_threadsafe(self._on_exit)
        except RuntimeError:
            pass  # the loop is closed: the finalizer ends the group

    @property
    def descriptor(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
