"""The server dies in the middle: every call is told, the next one works, nobody is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from statistics import median, quantiles

from interlock import Client
from interlock.wire.errors import ConnectionEnded

from ..frames import MODERN
from ..lab import Lab, Problems
from ..ledger import NOT_SENT, OK, UNKNOWN, Ledger
from ..processes import children, end, end_marked, marked, wait_until

__all__ = ["run"]

_HANG = 10.0  # seconds after which a call that did not end is called a hang
_GONE = 2.0  # seconds that the old tree may take to be gone
_MANNERS = ("0", "1", "SIGSEGV", "SIGTERM", "SIGABRT")


def run(lab: Lab) -> None:
    asyncio.run(_mid_call(lab, lab.dose(200, 20)))
    asyncio.run(_while_starting(lab, lab.dose(40, 5)))
    asyncio.run(_other_ends(lab, lab.dose(5, 1)))
    asyncio.run(_lingering(lab, lab.dose(4, 2)))
    asyncio.run(_other_session(lab, lab.dose(3, 1)))


class _Kills:
    """Rounds of calls and deaths on one Client."""

    def __init__(self, lab: Lab, ledger: Ledger) -> None:
        self.lab, self.ledger, self.problems = lab, ledger, Problems()
        self.client = Client(lab.command(lab.served("fragile.py"), FAULTLAB_LEDGER=str(ledger.path)))
        self.latencies: list[float] = []
        self.restarts: list[float] = []
        self.hangs = 0
        self._made = 0
        self._killed_at = 0.0

    async def call(self, seconds: float) -> None:
        """One call with a nonce; its outcome goes into the ledger, whatever it is."""
        number, self._made = self._made, self._made + 1
        self.ledger.outcomes[number] = UNKNOWN
        try:
            async with asyncio.timeout(_HANG):
                result = await self.client.call_tool(
                    "work", {"nonce": self.ledger.nonce(number), "seconds": seconds}, timeout=60.0
                )
        except ConnectionEnded as error:
            self.ledger.outcomes[number] = NOT_SENT if error.sent is False else UNKNOWN
            self.latencies.append(time.monotonic() - self._killed_at)
        except TimeoutError:
            self.hangs += 1
            self.problems.add(f"a call was still waiting after {_HANG:g} s")
        except Exception as error:
            self.problems.add(f"a call ended with {error!r:.160}")
        else:
            self.ledger.outcomes[number] = OK
            self.problems.require(self.ledger.number(result.text) == number, "an answer with another's nonce")

    async def server(self) -> int:
        """The pid of the running server, by a call that must work."""
        started = time.monotonic()
        async with asyncio.timeout(_HANG):
            found = (await self.client.call_tool("who")).structured
        self.restarts.append(time.monotonic() - started)
        return found["pid"]

    async def round(self) -> None:
        random = self.lab.random
        pid = await self.server()
        tree = marked(self.lab.token)
        pauses = [random.choice((0.0, random.uniform(0.0, 0.03), 30.0)) for _ in range(random.randint(1, 64))]
        calls = [asyncio.ensure_future(self.call(seconds)) for seconds in [*pauses[1:], 30.0]]
        await asyncio.sleep(random.choice((0.0, random.uniform(0.0, 0.03))))
        self._killed_at = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        await asyncio.gather(*calls)
        await self.gone(tree)

    async def gone(self, tree: dict[int, str]) -> None:
        def none_left() -> bool:
            return not marked(self.lab.token).keys() & tree.keys()

        if not await asyncio.to_thread(wait_until, none_left, _GONE):
            left = {pid: role for pid, role in marked(self.lab.token).items() if pid in tree}
            self.problems.add(f"still there after {_GONE:g} s: {', '.join(sorted(left.values()))}")
            end(left)

    async def close(self) -> None:
        """Close the client; afterwards there is neither a zombie nor anything alive."""
        await self.client.close()
        await self.gone(marked(self.lab.token))
        zombies = [pid for pid, state in children(os.getpid()).items() if state == "Z"]
        self.problems.require(not zombies, f"{len(zombies)} zombies")


async def _mid_call(lab: Lab, kills: int) -> None:
    ledger = Ledger(lab.folder / "ledger", kills * 64, lab.random)
    rounds = _Kills(lab, ledger)
    await rounds.client.open()
    for number in range(kills):
        lab.say(f"{number} of {kills} kills")
        await rounds.round()
    await rounds.server()
    await rounds.close()
    ledger.check(rounds.problems)
    told = sorted(rounds.latencies)
    lab.row(
        "SIGKILL with calls pending",
        f"{kills} kills, 1–64 calls",
        f"{ledger.told(OK):,} ok, {ledger.told(UNKNOWN):,} told unknown, {ledger.told(NOT_SENT):,} told not sent, "
        f"{rounds.hangs} hangs; told after {_ms(median(told))} (median), {_ms(quantiles(told, n=100)[98])} (p99); "
        f"next call answered after {_ms(median(rounds.restarts[1:]))}, start of the server included",
        rounds.problems,
    )


async def _while_starting(lab: Lab, kills: int) -> None:
    """The kill comes at a random moment of the start. The call that started the server may fail, the next may not."""
    rounds = _Kills(lab, Ledger(lab.folder / "starting", 1, lab.random))
    await rounds.client.open()
    worked = told = older = 0
    for _ in range(kills):
        os.kill(await rounds.server(), signal.SIGKILL)
        older += rounds.client.revision != MODERN
        await rounds.gone(marked(lab.token))
        starting = asyncio.ensure_future(rounds.server())
        await asyncio.sleep(lab.random.uniform(0.0, 0.15))
        tree = marked(lab.token)
        for pid in [pid for pid, role in tree.items() if role == "server"]:
            os.kill(pid, signal.SIGKILL)
        try:
            await starting
            worked += 1
        except ConnectionEnded:
            told += 1
        except Exception as error:
            rounds.problems.add(f"the call that started the server ended with {error!r:.160}")
        await rounds.gone(tree)
    await rounds.server()
    older += rounds.client.revision != MODERN
    await rounds.close()
    result = f"the starting call worked {worked} times and was told {told} times; afterwards the client "
    result += f"spoke an older revision than before in {older} of {kills} rounds" if older else "went on as before"
    lab.row("SIGKILL while it starts", f"{kills} kills", result, rounds.problems)


async def _other_ends(lab: Lab, times: int) -> None:
    rounds = _Kills(lab, Ledger(lab.folder / "ends", 1, lab.random))
    await rounds.client.open()
    for manner in _MANNERS * times:
        await rounds.server()
        tree = marked(lab.token)
        try:
            async with asyncio.timeout(_HANG):
                await rounds.client.call_tool("die", {"manner": manner})
            rounds.problems.require(manner == "SIGTERM", f"{manner}: the call was answered")
        except ConnectionEnded:
            pass
        except Exception as error:
            rounds.problems.add(f"{manner}: {error!r:.160}")
        await rounds.gone(tree)
    await rounds.server()
    await rounds.close()
    lab.row("it ends by itself", f"{times} × {', '.join(_MANNERS)}", "each told, each restarted", rounds.problems)


async def _lingering(lab: Lab, times: int) -> None:
    """A foreign server closes its stdout and stays: the Client owns its end all the same."""
    problems = Problems()
    client = Client(lab.command(lab.plain("lingering.py"), patience=0.5))
    await client.open()
    for _ in range(times):
        try:
            async with asyncio.timeout(_HANG):
                await client.call_tool("any")
        except ConnectionEnded:
            continue
        except Exception as error:
            problems.add(f"{error!r:.160}")
    started = time.monotonic()
    await client.close()
    seconds = time.monotonic() - started
    await asyncio.to_thread(wait_until, lambda: not marked(lab.token), _GONE)
    left = end_marked(lab.token)
    problems.require(not left, f"{left} of {times} servers alive {_GONE:g} s after close()")
    lab.row("it closes its stdout and stays", f"{times} times", f"close() took {seconds:.1f} s", problems)


async def _other_session(lab: Lab, times: int) -> None:
    """A grandchild that left the group on purpose (as daemons do): reported, not judged."""
    left = {"after SIGKILL of the server": 0, "after close()": 0}
    for manner in left:
        for _ in range(times):
            command = lab.command(lab.served("fragile.py"), FAULTLAB_SLEEPER="session")
            async with Client(command) as client:
                found = (await client.call_tool("who")).structured
                if manner != "after close()":
                    os.kill(found["pid"], signal.SIGKILL)
                    await asyncio.to_thread(wait_until, lambda: "server" not in marked(lab.token).values(), _GONE)
            await asyncio.to_thread(wait_until, lambda: not marked(lab.token), 0.5)
            left[manner] += end_marked(lab.token)
    told = ", ".join(f"{count} of {times} left {manner}" for manner, count in left.items())
    lab.row("a grandchild in a session of its own", f"2 × {times} ends", told, None)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"
