"""What the driver says and what it must hear: two eras as prepared bytes, and the check of every answer."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

# Before each block as many calls are prepared as it takes at this rate, which the driver does not reach.
MAX_CALLS_PER_SECOND = 600_000
# Calls of one server process: a warm-up and all windows of a round at that rate. They would take 450 MB of the driver's
# memory; the answers that the null server prepares take 210 MB of its own.
MAX_CALLS = 1_500_000


@dataclass(frozen=True)
class Era:
    """One way to talk: the messages before the first call, and how a call looks."""

    name: str
    hello: bytes  # asks for one answer (id 0); empty when the first message is a call already
    after_hello: bytes
    call_template: bytes  # takes the id and the first number; the second number is always 1
    needs_result_type: bool
    lists: int = 0  # so many tools are listed by every call, which is no call of a tool then


def _line(message: dict[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _call_template(meta: dict[str, object] | None) -> bytes:
    params: dict[str, object] = {"name": "add", "arguments": {"a": "<a>", "b": 1}}
    if meta is not None:
        params["_meta"] = meta
    line = _line({"jsonrpc": "2.0", "id": "<id>", "method": "tools/call", "params": params})
    return line.replace(b'"<id>"', b"%d").replace(b'"<a>"', b"%d")


_CLIENT = {"name": "bench", "version": "1"}

HANDSHAKE = Era(
    name="2025-11-25",
    hello=_line(
        {
            "jsonrpc": "2.0",
            "id": 0,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
        }
    ),
    after_hello=_line({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    call_template=_call_template(None),
    needs_result_type=False,
)

_ENVELOPE: dict[str, object] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _CLIENT,
}

STATELESS = Era(
    name="2026-07-28",
    hello=b"",
    after_hello=b"",
    call_template=_call_template(_ENVELOPE),
    needs_result_type=True,
)


LISTED = 500


def listing(era: Era) -> Era:
    """The same era, in which every call asks for the list of tools."""
    meta: dict[str, object] = {"com.example/number": "<a>"}
    if era is STATELESS:
        meta |= _ENVELOPE
    line = _line({"jsonrpc": "2.0", "id": "<id>", "method": "tools/list", "params": {"_meta": meta}})
    template = line.replace(b'"<id>"', b"%d").replace(b'"<a>"', b"%d")
    return replace(era, call_template=template, lists=LISTED)


@cache
def _calls(era: Era) -> list[bytes]:
    return []


def prepared_calls(era: Era, count: int) -> list[bytes]:
    """Calls 1, 2, 3 …, at least so many, in one list for all servers.

    Call n asks for n + 1, so that an answer that went to the wrong call is noticed.
    """
    calls = _calls(era)
    calls += [era.call_template % (number, number) for number in range(len(calls) + 1, count + 1)]
    return calls


class WrongAnswer(Exception):
    """The server answered, but not what it was asked."""


def check_hello(line: bytes, era: Era) -> None:
    answer = json.loads(line)
    spoken = answer.get("result", {}).get("protocolVersion")
    if answer.get("id") != 0 or spoken != era.name:
        raise WrongAnswer(f"initialize was answered with {line[:160]!r}")


def check_answers(lines: Iterable[bytes], first: int, count: int, era: Era) -> None:
    """Calls first … first + count - 1 must each be answered once, without error and with the right sum."""
    missing = set(range(first, first + count))
    for line in lines:
        number = _checked_id(line, era)
        if number not in missing:
            raise WrongAnswer(f"an answer nobody waits for: {line[:160]!r}")
        missing.remove(number)
    if missing:
        raise WrongAnswer(f"{len(missing)} of {count} calls were not answered, the first is {min(missing)}")


def _checked_id(line: bytes, era: Era) -> int:
    answer = json.loads(line)
    number = answer.get("id")
    result = answer.get("result")
    if not isinstance(number, int) or not isinstance(result, dict) or result.get("isError"):
        raise WrongAnswer(f"not the result of a call: {line[:160]!r}")
    if era.needs_result_type and result.get("resultType") != "complete":
        raise WrongAnswer(f"no 2026-07-28 result: {line[:160]!r}")
    if era.lists:
        if len(result.get("tools", ())) != era.lists:
            raise WrongAnswer(f"not {era.lists} tools: {line[:160]!r}")
        return number
    content = result.get("content") or [{}]
    if content[0].get("text") != str(number + 1):
        raise WrongAnswer(f"call {number} has the wrong sum: {line[:160]!r}")
    return number
