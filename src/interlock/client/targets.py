"""What a client can be pointed at, and how each is dialled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from ..protocol.client.base import ClientEdge
from ..protocol.client.inbound import ClientSide
from ..protocol.client.probe import Prober
from ..transport.jsonrpc.connection import Duplex
from ..transport.jsonrpc.serve import serve_channel
from ..transport.jsonrpc.served_handler import lives_of
from ..transport.memory import memory_pair
from ..transport.stdio.child_process import ChildChannel, Command
from ..wire.channel import Channel
from ..wire.errors import LocalError
from ..wire.exchange import Handler
from ..wire.limits import Limits
from ..wire.signatures import signature_of

if TYPE_CHECKING:
    from ..auth.client.providers import Plan
    from .http_target import HttpTarget

__all__ = ["ClientLine", "Target", "target_of"]


class Target:
    """Makes a fresh channel for every attempt; `key` names it in the memory of verdicts."""

    prober = Prober

    def __init__(
        self, make: Callable[[], Channel], key: Any = None, name: str = "server", *, pings: bool = True
    ) -> None:
        self.make, self.key, self.name, self.pings = make, key, name, pings


class ClientLine(Duplex):
    """A connection that tells its side which edge answers for us, once there is one."""

    def __init__(self, channel: Channel, side: ClientSide, limits: Limits) -> None:
        super().__init__(channel, side, limits)
        self.side = side
        side.hidden = getattr(channel, "hidden", None)

    @property
    def is_unread(self) -> bool:
        """True where the channel knows that the server has not read anything yet."""
        return getattr(self._channel, "is_unread", False)

    def adopt(self, edge: ClientEdge) -> None:
        self.side.edge = edge


def target_of(
    target: Any,
    limits: Limits,
    headers: Mapping[str, str] | None = None,
    allowed_hosts: Iterable[str] = (),
    auth: Plan | None = None,
) -> Target | HttpTarget:
    """A URL, a server object, a command, an entry of a configuration, or a channel (or a function that makes one)."""
    if isinstance(target, str) and target[:8].lower().startswith(("http://", "https://")):
        from ..web.outbound.endpoint import endpoint_of  # who talks to a process starts without HTTP
        from .http_target import HttpTarget

        return HttpTarget(endpoint_of(target, headers, allowed_hosts=allowed_hosts), limits, auth=auth)
    if isinstance(target, Mapping | PathLike) or (hasattr(target, "command") and hasattr(target, "address")):
        return _of_entry(cast(Any, target), limits, headers, allowed_hosts, auth)
    _check_no_url(headers, allowed_hosts, auth)
    return _of_channels(target, limits)


def _check_no_url(headers: Mapping[str, str] | None, allowed_hosts: Iterable[str], auth: Plan | None) -> None:
    if headers is not None or allowed_hosts or auth is not None:
        which = "headers" if headers is not None else "auth" if auth is not None else "allowed_hosts"
        raise LocalError(f"{which}= belongs to a target that is an http:// or https:// URL")


def _of_entry(
    target: Any, limits: Limits, headers: Mapping[str, str] | None, allowed_hosts: Iterable[str], auth: Plan | None
) -> Target | HttpTarget:
    """What it refers to is looked up now, so that mistakes show at once, and again for every connection."""
    from .config.entries import ConfigError, ServerEntry, entry_in  # who names a server itself starts without it

    _check_no_code(target)
    entry = target if isinstance(target, ServerEntry) else entry_in(target)
    if entry.kind == "stdio":
        _check_no_url(headers, allowed_hosts, auth)
        entry.command()
        return Target(lambda: ChildChannel(entry.command(), limits), entry.key, entry.name)
    from ..web.outbound.endpoint import Endpoint, endpoint_of, hide_references
    from .http_target import HttpTarget

    hosts = allowed_hosts if isinstance(allowed_hosts, str) else tuple(allowed_hosts)

    def endpoint() -> Endpoint:
        resolved = entry.resolve()
        (url, own), found = resolved.address(), resolved.references
        try:
            sent = {**own, **(headers or {})}
            return endpoint_of(url, sent, allowed_hosts=hosts, shown=resolved.shown_url, references=found)
        except LocalError as error:
            raise ConfigError(f"{entry.at}: {hide_references(str(error), found)}") from None

    return HttpTarget(endpoint(), limits, endpoint, auth)


def _check_no_code(target: Any) -> None:
    path = str(target) if isinstance(target, PathLike) else ""  # pyright: ignore[reportUnknownArgumentType]
    if path.endswith(".py"):
        raise LocalError(f"{path!r:.200} is no configuration: {_file_told(path)}")


def _of_channels(target: Any, limits: Limits) -> Target:
    if isinstance(target, str | bytes):
        told = "give a URL (http://..., https://...), a command as a list, like ['python', 'server.py'], or the Path "
        is_file = str(target).endswith(".py") and " " not in str(target)  # else a whole command line
        told = _file_told(str(target)) if is_file else f"{told}of a configuration"
        raise LocalError(f"{target!r:.200} is a string: {told}")
    if isinstance(target, Sequence):
        if not all(isinstance(part, str) for part in cast("Sequence[Any]", target)):
            raise LocalError(f"{target!r} is no command: every part must be a string")
        target = Command.of(cast("Sequence[str]", target))
    if isinstance(target, Command):
        command = target
        return Target(
            lambda: ChildChannel(command, limits),
            (*command.args, command.cwd, command.env_policy, *sorted((command.env or {}).items())),
            command.args[0] if command.args else "",
        )
    if hasattr(target, "open") and hasattr(target, "send"):
        return Target(_once(target))
    if callable(target) and (hasattr(target, "rows") or _is_handler(target)):
        return Target(lambda: _serve_in_memory(cast(Handler, target), limits), name="memory", pings=False)
    if callable(target):
        return Target(cast("Callable[[], Channel]", target))
    raise LocalError(f"{target!r} is no target: give a URL, a Server, a command as a list, or a Channel")


def _file_told(path: str) -> str:
    return f"start a file with a server by [sys.executable, '-m', 'interlock', 'run', {path!r:.200}]"


def _is_handler(target: Any) -> bool:
    """A plain Handler takes one exchange; a function that makes channels takes nothing."""
    try:
        parameters = signature_of(target).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.default is each.empty and each.kind in positional for each in parameters)


def _once(channel: Channel) -> Callable[[], Channel]:
    left = [channel]

    def make() -> Channel:
        if not left:
            raise LocalError("this channel was used already: give a function that makes one to allow reconnecting")
        return left.pop()

    return make


def _serve_in_memory(handler: Handler, limits: Limits) -> Channel:
    near, far = memory_pair()
    near.after_close = lives_of(handler).settle
    far.attach(serve_channel(handler, far, limits=limits))
    return near
