"""For everybody's tests: a server in memory in any revision, a scripted user, and a transcript of every frame.

    from interlock.testing import REVISIONS, MemoryClient, Script

    @pytest.mark.parametrize("revision", REVISIONS)
    async def test_booking(revision):
        script = Script().accept("Which seat?", row=7)
        async with MemoryClient(server, revision=revision, script=script) as client:
            assert (await client.call_tool("book", {"flight": "OS 1"})).text == "row 7"

May import any room; no other room imports this one. Needs no test framework.
"""

from __future__ import annotations

from ..revisions.table import REVISIONS as _ROWS
from .memory_client import MemoryClient
from .recording import recording
from .script import Script, UnexpectedQuestion
from .transcript import Line, Transcript

__all__ = ["REVISIONS", "Line", "MemoryClient", "Script", "Transcript", "UnexpectedQuestion", "recording"]

REVISIONS: tuple[str, ...] = tuple(_ROWS)
"""The names of all revisions, oldest first, to run a test in each."""
