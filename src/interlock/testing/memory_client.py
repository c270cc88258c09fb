"""A client for tests: in memory, in the revision of your choice, with a script and a transcript."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ..client.client import Client
from ..protocol.client.probe import Verdicts
from ..transport.jsonrpc.serve import serve_channel
from ..transport.memory import memory_pair
from ..wire.channel import Channel, Patience
from ..wire.errors import LocalError
from ..wire.exchange import Handler
from .recording import recording
from .script import Script
from .transcript import Transcript

__all__ = ["MemoryClient"]

PATIENCE = Patience(idle=10.0, total=60.0)  # a test that hangs should say so soon


class MemoryClient(Client):
    """A `Client` of a server in the same process. Every frame is in `transcript`, also in the report of a failure.

    With a `script` it declares all that can be asked (or what `can` names: `elicitation`, `elicitation.url`,
    `sampling`, `roots`), answers by it, and fails at the end if anything was asked or answered otherwise. Other options
    are those of `Client`.
    """

    def __init__(
        self,
        server: Handler,
        *,
        revision: str | tuple[str, ...] | None = None,
        script: Script | None = None,
        can: tuple[str, ...] | None = None,
        **options: Any,
    ) -> None:
        if can is not None and script is None:
            raise LocalError("can= says what a script answers: give a script too")
        self.transcript = Transcript()
        self.script = script
        if script is not None:
            options |= script.callbacks() if can is None else script.callbacks(can)
        options = {"timeout": PATIENCE, "keepalive": None, "verdicts": Verdicts(), **options}
        super().__init__(recording(lambda: _served(server), self.transcript), revision=revision, **options)

    async def __aenter__(self) -> MemoryClient:
        await super().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        problems = self.script.problems() if self.script is not None else []
        if error is not None:
            for told in problems:
                error.add_note(told)
            error.add_note(f"What was said:\n{self.transcript}")
        elif problems:
            raise AssertionError("\n".join([*problems, "What was said:", str(self.transcript)]))


def _served(server: Handler) -> Channel:
    near, far = memory_pair()
    far.attach(serve_channel(server, far))
    return near
