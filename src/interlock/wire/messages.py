"""JSON-RPC messages: bytes ↔ frames. The one strict reader at every door.

A frame is decoded once, its params, result and error stay raw bytes until somebody who knows their type reads
them. What msgspec refuses is read once more by the standard library, only to find the id for the error answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .errors import BadFrame, InvalidRequest, LocalError, ParseError, Refused, refusal
from .json.decoder import decoder
from .json.duplicate_names import DuplicateName, check_unique_names
from .json.lenient import members_of
from .json.reader import STRINGS
from .lazy_regex import pattern
from .limits import DEFAULT_LIMITS, Limits

__all__ = [
    "Frame",
    "Id",
    "ErrorObject",
    "ErrorAnswer",
    "read_frame",
    "read_batch",
    "is_batch",
    "encode",
    "encode_call",
    "encode_notice",
    "encode_result",
    "encode_error",
    "error_of",
    "id_of_beginning",
]

Id = int | str


class Frame(msgspec.Struct, gc=False):
    """One message. With `method` and `id` a request, with `method` a notification, else a response."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Answer(msgspec.Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    """A response on its way out: cheaper to make and to write than a dict of its members."""

    id: int | str
    result: Any


class ErrorObject(msgspec.Struct):
    code: int
    message: str
    data: Any = UNSET


class ErrorAnswer(bytes):
    """The bytes of an error answer. A carrier that tells outcomes apart outside of the message (HTTP) reads `code`."""

    code: int


_read = msgspec.json.Decoder(Frame).decode
_errors = decoder(ErrorObject)
_arrays = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.Encoder().encode
_STEPS = bytes.maketrans(b"{}[]", bytes((0, 2, 0, 2)))  # 1 - 0 opens, 1 - 2 closes
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LEADING_ID = pattern(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d{1,18}|"[^"\\\x00-\x1f\x80-\xff]*")\s*[,}]'
)
_LEAST, _MOST = -(2**53), 2**53  # what every JSON reader tells apart
_NEWLINE, _BRACKET = b"\n["  # as numbers: bytes look for a number without raising an error inside first
_RECOVERABLE = 1024 * 1024  # beyond this, a broken frame is not read a second time for its id


# --- reading --------------------------------------------------------------------------------------


def read_frame(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Frame:
    """Decode one message, or raise `BadFrame` with the answer it deserves."""
    try:
        frame = _read(data)
        if not data.isascii():
            data.decode()  # msgspec skips raw members without looking at their UTF-8
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise diagnose(data, error) from None
    # Brackets of arrays are a level of their own, one of objects takes five bytes: {"":}
    if (
        len(data) > 2 * limits.depth
        and (len(data) > 5 * limits.depth or _BRACKET in data)
        and _too_deep(data, limits.depth)
    ):
        raise _bad_frame(frame, ParseError(f"Nested deeper than {limits.depth} levels"), _usable_id(frame.id))
    if limits.strict_json:
        try:
            check_unique_names(data)
        except DuplicateName as error:
            # Of two ids in a message neither is known to be the one that its sender waits for.
            id = None if error.name == "id" else _usable_id(frame.id)
            raise _bad_frame(frame, InvalidRequest(f"Not a JSON-RPC 2.0 message: {error}"), id) from None
    id = frame.id
    if type(id) is int and frame.method is not UNSET and _LEAST < id < _MOST:
        return frame  # an ordinary request: nothing else to look at
    if id is not UNSET:
        _check_id(frame, limits)
    elif frame.method is UNSET and frame.error is UNSET:
        if frame.result is not UNSET:
            raise BadFrame(None)
        raise BadFrame(InvalidRequest("Neither a request, a notification nor a response"))
    return frame


def is_batch(line: bytes) -> bool:
    return line[:1] == b"[" or line.lstrip()[:1] == b"["


def read_batch(line: bytes, limits: Limits = DEFAULT_LIMITS) -> list[Frame | BadFrame]:
    """Decode an array of messages, where a revision has them: each element on its own, the array as a whole bounded."""
    try:
        parts = _arrays.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadFrame(ParseError("Not valid JSON")) from None
    if not parts:
        raise BadFrame(InvalidRequest("An empty batch"))
    if len(parts) > limits.batch:
        raise BadFrame(InvalidRequest(f"More than {limits.batch} messages in one batch"))
    found: list[Frame | BadFrame] = []
    for part in parts:
        try:
            found.append(read_frame(bytes(part), limits))
        except BadFrame as bad:
            found.append(bad)
    return found


def diagnose(data: bytes, error: Exception) -> BadFrame:
    """Why `data` is no frame, and the id to answer with. Malformed notifications get no answer (BASE-14)."""
    if isinstance(error, RecursionError):
        id = id_of_beginning(data[:1024])
        is_response = b'"method"' not in data[:1024]
        told = ParseError("Nested too deep to be read")
        return BadFrame(told, id, answers=id if is_response else None)
    members = _read_again(data)
    id = _usable_id(members.get("id"))
    is_response = "method" not in members and ("result" in members or "error" in members)
    if "id" not in members and isinstance(members.get("method"), str):
        return BadFrame(None)
    if not isinstance(error, msgspec.ValidationError) or not (members or _is_json(data)):
        # msgspec stops at the first value of the wrong kind: whether it is JSON at all is looked at here
        return BadFrame(ParseError("Not valid JSON"), id, answers=id if is_response else None)
    if is_response:
        return BadFrame(None, answers=id)
    return BadFrame(InvalidRequest(f"Not a JSON-RPC 2.0 message: {_without_types(error)}"), id)


def id_of_beginning(beginning: bytes) -> Id | None:
    """The id of a message too long to be read, if it stands before everything long."""
    found = _LEADING_ID.match(beginning)
    return cast(Id, msgspec.json.decode(found[1])) if found else None


def error_of(frame: Frame, classes: dict[int, type[Refused]]) -> Refused | None:
    """The error of a response as an exception, or None when its error member is malformed."""
    try:
        told = _errors.decode(frame.error if frame.error is not UNSET else b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return refusal(told.code, told.message, None if told.data is UNSET else told.data, classes)


def _check_id(frame: Frame, limits: Limits) -> None:
    """Only a request is told what is wrong with its id: a response is never answered."""
    id = frame.id
    wrong: str | None = None
    if id is None:
        # An error whose request could not be read has no id; some peers write null (BASE-12).
        wrong = "The id must not be null" if frame.method is not UNSET or frame.error is UNSET else None
    elif isinstance(id, int):
        wrong = None if _fits(id) else "The id does not fit into 64 bits"
    elif isinstance(id, str) and len(id) > limits.id_bytes:
        wrong = f"The id is longer than {limits.id_bytes} characters"
    if wrong is not None:
        raise BadFrame(InvalidRequest(wrong) if frame.method is not UNSET else None, _usable_id(id))
    if frame.method is UNSET and frame.result is UNSET and frame.error is UNSET:
        raise BadFrame(InvalidRequest("Neither a request nor a response"), _usable_id(id), answers=_usable_id(id))


def _bad_frame(frame: Frame, told: Refused, id: Id | None) -> BadFrame:
    """A request is told what is wrong with it; a response ends the call it answers."""
    if frame.method is UNSET:
        return BadFrame(None, id, answers=id)
    return BadFrame(told if frame.id is not UNSET else None, id)


def _fits(id: int) -> bool:
    return -(2**63) <= id < 2**64


def _usable_id(id: Any) -> Id | None:
    if type(id) is int:
        return id if -(10**512) < id < 10**512 else None
    usable = isinstance(id, str) and len(id) <= DEFAULT_LIMITS.id_bytes and id.isprintable() and "\ufffd" not in id
    return id if usable else None


def _read_again(data: bytes) -> dict[str, Any]:
    """The members of a message that msgspec refused, as far as the standard library can read them."""
    if len(data) > _RECOVERABLE:
        return {}
    import json  # nobody else needs it, and a server starts without it

    try:
        read = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return members_of(read)


def _is_json(data: bytes) -> bool:
    """False for what is nested too deep: how deep the decoder itself can read depends on the Python and its stack."""
    if _too_deep(data, DEFAULT_LIMITS.depth):
        return False
    try:
        msgspec.json.decode(data, type=Raw)
        data.decode()  # a raw value is skipped without looking at its UTF-8
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _too_deep(data: bytes, limit: int) -> bool:
    """Are there brackets enough, and if so: +1 for each outside of strings that opens, -1 for each that closes."""
    if data.count(b"{") + data.count(b"[") <= limit:
        return False
    brackets = STRINGS.sub(b"", data).translate(_STEPS, _NOT_BRACKETS)
    return max(accumulate(map((1).__sub__, brackets)), default=0) > limit


def _one_line(message: str) -> str:
    """A message is one short sentence (basic/index#error-responses), whatever a peer's text in it contains."""
    return message if message.isprintable() and len(message) <= 500 else " ".join(message[:500].split())


def _without_types(error: Exception) -> str:
    return str(error).replace("`", "'")


# --- writing --------------------------------------------------------------------------------------


def encode(message: Any) -> bytes:
    """Compact JSON on one line, whatever raw parts it was put together from."""
    data = _encode(message)
    return data if _NEWLINE not in data else _on_one_line(data)


def _on_one_line(data: bytes) -> bytes:
    return msgspec.json.format(data, indent=-1)


def encode_call(id: Id, method: str, params: Mapping[str, Any] | None) -> bytes:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        frame["params"] = params
    return _said(frame)


def encode_notice(method: str, params: Mapping[str, Any] | None) -> bytes:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        frame["params"] = params
    return _said(frame)


def _said(frame: dict[str, Any]) -> bytes:
    """What a caller wants to say may be anything: half a character that a model wrote, say."""
    try:
        return encode(frame)
    except (TypeError, ValueError, RecursionError) as error:
        raise LocalError(f"{frame['method']}: this cannot be said in JSON: {error!s:.200}") from error


def encode_result(id: Id, result: Mapping[str, Any] | Raw) -> bytes:
    data = _encode(_Answer(id, result))
    return data if _NEWLINE not in data else _on_one_line(data)


def encode_error(id: Id | None, error: Refused) -> ErrorAnswer:
    """An error answer; without an id when the request's could not be read (basic/index#responses)."""
    told: dict[str, Any] = {"code": error.code, "message": _one_line(error.message)}
    if error.data is not None:
        told["data"] = error.data
    frame: dict[str, Any] = {"jsonrpc": "2.0"}
    if id is not None:
        frame["id"] = id if isinstance(id, str) or _fits(id) else Raw(str(id).encode())
    frame["error"] = told
    answer = ErrorAnswer(encode(frame))
    answer.code = error.code
    return answer
