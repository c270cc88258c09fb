"""Bytes that are almost frames, and bytes that are not: drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .frames import INITIALIZED, call, cancel, hello, modern, old

__all__ = ["Mutator"]

# The listen request has an id of one character: its mutants can keep only a few hundred streams open.
CORPUS = (
    modern(1, "server/discover"),
    modern(2, "tools/list"),
    modern("L", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    call("seven", "add", {"a": 1, "b": 2}),
    call(8, "echo", {"text": 'häßlich \\u0000 "quoted" \n', "times": 2}, progressToken=8),
    hello(9),
    INITIALIZED,
    old(10, "tools/list", {"cursor": "abc"}),
    old(11, "tools/call", {"name": "add", "arguments": {"a": 3, "b": 4}}),
    old(12, "resources/read", {"uri": "file:///etc/hosts"}),
    old(13, "logging/setLevel", {"level": "debug"}),
    old(14, "ping"),
    cancel("L"),
    cancel(8),
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":[1,2]}}',
    b"[" + old(15, "ping") + b"," + old(16, "tools/list") + b"]",
)
TOKENS = (
    b"null true false -0 1e999 -1e-999 NaN Infinity 9223372036854775808 -9223372036854775809 0.1 [] {} [[]] "
    b'"" "\\ud800" "\\u0000" "a":1, ,, : "jsonrpc":"2.0", "id":0, "id":"", "method":"", "_meta":{} "params":[] '
    b"\xff \xc0\x80 \xef\xbb\xbf \xe2\x80\xa8 \r \t // /**/ ' \\ \x00"
).split(b" ")


class Mutator:
    """`line()` gives the next line, without a newline in it except where a mutation put one."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds: list[Callable[[bytes], bytes]] = [
            self._flip,
            self._flip,
            self._truncate,
            self._splice,
            self._token,
            self._token,
            self._repeat,
            self._number,
            self._drop,
            self._deepen,
            self._lengthen,
            self._noise,
        ]

    def line(self) -> bytes:
        line = self._random.choice(CORPUS)
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            line = self._random.choice(self._kinds)(line)
        return line

    def _at(self, line: bytes) -> int:
        return self._random.randrange(len(line) + 1)

    def _flip(self, line: bytes) -> bytes:
        data = bytearray(line or b"x")
        for _ in range(self._random.randint(1, 8)):
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)
        return bytes(data)

    def _truncate(self, line: bytes) -> bytes:
        return line[: self._at(line)]

    def _splice(self, line: bytes) -> bytes:
        other = self._random.choice(CORPUS)
        return line[: self._at(line)] + other[self._at(other) :]

    def _token(self, line: bytes) -> bytes:
        at = self._at(line)
        return line[:at] + self._random.choice(TOKENS) + line[at + self._random.randrange(4) :]

    def _repeat(self, line: bytes) -> bytes:
        start, end = sorted((self._at(line), self._at(line)))
        return line[:end] + line[start:end] * self._random.randint(1, 4) + line[end:]

    def _number(self, line: bytes) -> bytes:
        digits = [at for at, byte in enumerate(line) if 48 <= byte <= 57]
        if not digits:
            return line
        at = self._random.choice(digits)
        return line[:at] + b"9" * self._random.choice((1, 20, 400, 5000)) + line[at + 1 :]

    def _drop(self, line: bytes) -> bytes:
        start, end = sorted((self._at(line), self._at(line)))
        return line[:start] + line[end:]

    def _deepen(self, line: bytes) -> bytes:
        at, depth = self._at(line), self._random.choice((10, 127, 129, 2000))
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        return line[:at] + opening * depth + b"1" + closing * depth + line[at:]

    def _lengthen(self, line: bytes) -> bytes:
        at = self._at(line)
        size = self._random.choice((10, 1000, 1000, 70_000)) if self._random.random() < 0.2 else 100
        return line[:at] + self._random.choice((b"a", b"\\", b'"', b"\xff", b" ", b"0")) * size + line[at:]

    def _noise(self, line: bytes) -> bytes:
        return self._random.randbytes(self._random.randint(0, 200))
