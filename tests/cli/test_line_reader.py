"""Lines that a person types at a prompt: at a real (pseudo) terminal of a process of its own."""

import asyncio
import os
import pty
import stat
import sys
from pathlib import Path

from interlock.cli.line_reader import LineReader

SRC = Path(__file__).parents[2] / "src"
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
        print(f"said {line!r}", flush=True)
    reader.close()
    print(f"over {ticks > 1}", flush=True)
    ticking.cancel()

asyncio.run(main())
"""


class Sitting:
    """A program at a terminal."""

    def __init__(self, *words):
        self._ours, theirs = pty.openpty()
        self._start = asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, *words, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "PYTHONPATH": str(SRC), "TERM": "dumb"},
        )  # fmt: skip
        self._theirs, self.seen = theirs, ""

    async def __aenter__(self):
        self.process = await self._start
        os.close(self._theirs)
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        os.close(self._ours)

    def type(self, text):
        os.write(self._ours, text.encode())

    async def sees(self, text):
        """Wait until it is on the screen."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            while text not in self.seen:
                ready = loop.create_future()
                loop.add_reader(self._ours, lambda ready=ready: ready.done() or ready.set_result(None))
                try:
                    await ready
                finally:
                    loop.remove_reader(self._ours)
                try:
                    self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")
                except OSError as error:
                    raise AssertionError(f"it ended with: {self.seen}") from error


async def test_lines_history_completion_and_the_end(tmp_path):
    history = tmp_path / "new" / "history"
    async with Sitting(str(history)) as sitting:
        await sitting.sees("you> ")
        sitting.type("grüß\n")
        await sitting.sees("said 'grüß'")
        sitting.type("/to\t\n")
        await sitting.sees("said '/tools '")
        sitting.seen = ""
        sitting.type("\x10\x10\n")  # Ctrl-P: the line before
        await sitting.sees("said 'grüß'")
        sitting.type("\x04")
        await sitting.sees("over True")
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert history.read_text().splitlines()[:2] == ["grüß", "/tools "]


async def test_without_a_terminal_lines_are_read_as_they_come(monkeypatch, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        reader = LineReader(tmp_path / "history")
        assert [await reader.read("you> ") for _ in range(3)] == ["one", "two", None]
        reader.close()
    assert not (tmp_path / "history").exists()
