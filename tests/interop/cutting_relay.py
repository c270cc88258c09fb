"""A wire between two peers that breaks once: in the middle of an event, after the answering side has said a word.

    python cutting_relay.py PORT WORD

Relays to that port of loopback. Where it listens is said on stderr, then `cut` when it has cut, and `resumed` when
somebody comes back for what he missed.
"""

from __future__ import annotations

import asyncio
import sys


class Relay:
    def __init__(self, port: int, word: bytes) -> None:
        self.port = port
        self.word = word
        self.whole = True

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.port)
        ways = [
            asyncio.create_task(self.upwards(reader, far_writer)),
            asyncio.create_task(self.downwards(far_reader, writer)),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        writer.close()  # what was passed on arrives before the end does
        far_writer.transport.abort()

    async def upwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if b"last-event-id" in data.lower() and not self.whole:
                say("resumed")
            writer.write(data)
            await writer.drain()

    async def downwards(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        before = b""  # the word may come in two pieces
        while data := await reader.read(65536):
            at = (before + data).find(self.word) if self.whole else -1
            if at >= 0:
                self.whole = False
                writer.write(data[: at + len(self.word) - len(before)])
                say("cut")
                return
            writer.write(data)
            await writer.drain()
            before = (before + data)[1 - len(self.word) :]


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


async def main(port: int, word: bytes) -> None:
    server = await asyncio.start_server(Relay(port, word).relay, "127.0.0.1", 0)
    say(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2].encode()))
