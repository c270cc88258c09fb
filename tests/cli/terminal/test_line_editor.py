"""Lines that a person types at a prompt: at a real (pseudo) terminal of a process of its own."""

import asyncio
import os
import stat
import sys
from pathlib import Path

from interlock.cli.terminal.line_editor import LineReader
from support.sitting import Sitting

PROGRAM = """
import asyncio, sys
from pathlib import Path
from interlock.cli.terminal.line_editor import LineReader

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


NOTICES = """
import asyncio, sys
from pathlib import Path
from interlock.cli.terminal.line_editor import LineReader
from interlock.cli.terminal.output_buffer import OUTPUT

async def main():
    reader = LineReader(None)
    async def tell():
        while True:
            OUTPUT.write(sys.stdout, await asyncio.to_thread(Path("notices").read_text))
            await asyncio.to_thread(Path("told").write_text, "")
    telling = asyncio.create_task(tell())
    while (line := await reader.read("you> ")) is not None:
        print(f"entered {line!r}", flush=True)
    telling.cancel()
    print("over", flush=True)
    import os
    os._exit(0)  # a thread waits for the next notice

asyncio.run(main())
"""


async def test_notices_are_printed_above_the_prompt_and_never_into_a_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("notices", "told"):
        os.mkfifo(name)

    async def tell(text):
        """Until the program has handed it on."""
        await asyncio.to_thread(Path("notices").write_text, text)
        await asyncio.to_thread(Path("told").read_text)

    async with Sitting("-c", NOTICES) as sitting:
        await sitting.sees("you> ")
        await tell("the first\n")
        await sitting.sees("\r\x1b[Kthe first\r\nyou> ")  # the line is free: at once, and the prompt again
        sitting.type("abc")
        await sitting.sees("abc")
        await tell("the second\n")
        sitting.type("def\n")
        await sitting.sees("entered 'abcdef'")
        await sitting.sees("you> ")
        sitting.type("\x04")
        await sitting.sees("over")
    assert sitting.seen.index("def") < sitting.seen.index("the second") < sitting.seen.index("entered 'abcdef'")
    assert "abcdef" in sitting.seen and sitting.seen.count("the second") == 1


async def test_without_a_terminal_lines_are_read_as_they_come(monkeypatch, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        reader = LineReader(tmp_path / "history")
        assert [await reader.read("you> ") for _ in range(3)] == ["one", "two", None]
        reader.close()
    assert not (tmp_path / "history").exists()
