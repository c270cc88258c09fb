"""Lines that a person types at a prompt: at a real (pseudo) terminal of a process of its own."""

import stat
import sys

from interlock.cli.line_reader import LineReader
from support.sitting import Sitting

PROGRAM = """
import asyncio, sys
from pathlib import Path
from interlock.cli.line_reader import LineReader

async def main():
    known = ("/tools ", "/quit ")
    reader = LineReader(Path(sys.argv[1]), lambda line, word: [each for each in known if each.startswith(word)])
    ticks = 0
    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)
    ticking = asyncio.create_task(tick())
    while (line := await reader.read("you> ")) is not None:
        print(f"said {line!a}", flush=True)
    reader.close()
    print(f"over {ticks > 1}", flush=True)
    ticking.cancel()

asyncio.run(main())
"""


async def test_lines_history_completion_and_the_end(tmp_path):
    history = tmp_path / "new" / "history"
    async with Sitting("-c", PROGRAM, str(history)) as sitting:
        await sitting.sees("you> ")  # a key between two lines is the terminal's
        sitting.type("grüß\n")
        await sitting.sees(r"said 'gr\xfc\xdf'")
        await sitting.sees("you> ")  # a key between two lines is the terminal's
        sitting.type("/to\t\n")
        await sitting.sees("said '/tools '")
        await sitting.sees("you> ")  # a key between two lines is the terminal's
        sitting.type("\x10\x10\n")  # Ctrl-P: the line before
        await sitting.sees(r"said 'gr\xfc\xdf'")
        await sitting.sees("you> ")  # a key between two lines is the terminal's
        sitting.type("\x04")
        await sitting.sees("over True")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert history.read_text(encoding="utf-8").splitlines()[:2] == ["grüß", "/tools "]


async def test_without_a_terminal_lines_are_read_as_they_come(monkeypatch, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        reader = LineReader(tmp_path / "history")
        assert [await reader.read("you> ") for _ in range(3)] == ["one", "two", None]
        reader.close()
    assert not (tmp_path / "history").exists()
