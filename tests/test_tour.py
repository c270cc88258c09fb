"""examples/tour.py, the first thing a visitor runs: it shows what it promises, in every revision."""

from __future__ import annotations

import asyncio
import sys

from support.examples import EXAMPLES
from support.wire_peer import ALL

KEPT = "Note 1 is kept: deleting needs the user's word, and this client cannot ask (is_error)"
DELETED = "Deleted 'shopping'. (the user said yes)"


async def test_the_tour_goes_through_all_revisions():
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "tour.py"), stdout=pipe, stderr=pipe, stdin=asyncio.subprocess.DEVNULL
    )
    said, complained = await process.communicate()
    assert process.returncode == 0, complained.decode()
    parts = said.decode().split("\n\n")
    assert [part.split()[0] for part in parts[1:-1]] == list(ALL)
    for revision, part in zip(ALL, parts[1:-1], strict=True):
        assert '{"tea":2,"milk":1}' in part and "# shopping" in part
        assert "Summarise this note. Style: short." in part
        assert part.splitlines()[-1].endswith(KEPT if revision in ALL[:2] else DELETED)
