"""Lines that are no JSON, or none this project reads: -32700, without an id unless it can be recovered."""

from __future__ import annotations

from typing import Any

from support.cases import OK, PARSE, Case, fresh, lines
from support.json_values import in_params
from support.schema_source import HANDSHAKE_REVISIONS

__all__ = ["UNPARSEABLE", "DEEP"]

WHOLE = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

# The id cannot be read: there is no complete object it could belong to, or nothing says which of two it is.
NO_OBJECT = [
    ("only an opening brace", b"{"),
    ("only a closing brace", b"}"),
    ("only an opening bracket", b"["),
    ("two openings", b"{{"),
    ("a word", b"ping"),
    ("a log line", b"INFO: server started on port 8000"),
    ("a log line with brackets", b"[INFO] ready"),
    ("a Python dict", b"{'jsonrpc': '2.0', 'id': 1, 'method': 'ping'}"),
    ("a Python dict with None", b'{"jsonrpc": "2.0", "id": None, "method": "ping"}'),
    ("a JavaScript object", b'{jsonrpc:"2.0",id:1,method:"ping"}'),
    ("a header of another framing", b"Content-Length: 44"),
    ("an HTTP request line", b"POST /mcp HTTP/1.1"),
    ("an event stream line", b"data: " + WHOLE),
    ("an RFC 7464 record separator", b"\x1e" + WHOLE),
    ("a length prefix", b"44" + WHOLE),
    ("a bare NaN", b"NaN"),
    ("a bare minus", b"-"),
    ("a bare unterminated string", b'"ping'),
    ("a single quote string", b"'ping'"),
    ("a NUL", b"\x00"),
    ("a NUL before the object", b"\x00" + WHOLE),
    ("a NUL after the object", WHOLE + b"\x00"),
    ("bytes of no encoding", b"\xff\xfe\xfd"),
    ("a lone continuation byte", b"\x80"),
    ("invalid UTF-8 before the object", b"\xff" + WHOLE),
    ("invalid UTF-8 after the object", WHOLE + b"\xff"),
    ("invalid UTF-8 between members", b'{"jsonrpc":"2.0",\xff"id":1,"method":"ping"}'),
    ("a form feed before the object", b"\x0c" + WHOLE),
    ("a vertical tab after the object", WHOLE + b"\x0b"),
    ("a no-break space before the object", "\u00a0".encode() + WHOLE),
    ("a line separator before the object", "\u2028".encode() + WHOLE),
    ("truncated after jsonrpc", b'{"jsonrpc":"2.0"'),
    ("truncated in a key", b'{"jsonrpc":"2.0","me'),
    ("truncated after a colon", b'{"jsonrpc":"2.0","id":'),
    ("truncated after a comma", b'{"jsonrpc":"2.0","id":1,'),
    ("truncated in an id", b'{"jsonrpc":"2.0","id":"a'),
    ("truncated in a literal", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":tru'),
    ("truncated in an escape", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\u12'),
    ("truncated in a UTF-8 sequence", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xe2\x82'),
    ("the second half of a message", b'"method":"ping","params":{}}'),
    ("a trailing comma", b'{"jsonrpc":"2.0","id":1,"method":"ping",}'),
    ("a leading comma", b'{,"jsonrpc":"2.0","id":1,"method":"ping"}'),
    ("two commas", b'{"jsonrpc":"2.0",,"id":1,"method":"ping"}'),
    ("a missing comma", b'{"jsonrpc":"2.0" "id":1,"method":"ping"}'),
    ("a missing colon", b'{"jsonrpc":"2.0","id" 1,"method":"ping"}'),
    ("an equals sign", b'{"jsonrpc"="2.0","id"=1,"method"="ping"}'),
    ("a bracket closes a brace", b'{"jsonrpc":"2.0","id":1,"method":"ping"]'),
    ("one brace too many", WHOLE + b"}"),
    ("one brace too few", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{}'),
    ("two objects", WHOLE + WHOLE),
    ("two objects and a space", WHOLE + b" " + WHOLE),
    ("two objects and a comma", WHOLE + b"," + WHOLE),
    ("an object and a word", WHOLE + b" ok"),
    ("a comment behind", WHOLE + b" // please"),
    ("a comment in front", b"/* ping */ " + WHOLE),
    ("a comment inside", b'{"jsonrpc":"2.0",/*id*/"id":1,"method":"ping"}'),
    ("a hash comment", b"# " + WHOLE),
    ("an id with a leading zero", b'{"jsonrpc":"2.0","id":01,"method":"ping"}'),
    ("an id with a plus", b'{"jsonrpc":"2.0","id":+1,"method":"ping"}'),
    ("an id in hexadecimal", b'{"jsonrpc":"2.0","id":0x1,"method":"ping"}'),
    ("an id that is a word", b'{"jsonrpc":"2.0","id":one,"method":"ping"}'),
    ("an id that is NaN", b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}'),
    ("an id that is infinite", b'{"jsonrpc":"2.0","id":-Infinity,"method":"ping"}'),
    ("an id that is not UTF-8", b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}'),
    ("an array cut short", b"[" + WHOLE),
    ("an array with a trailing comma", b"[" + WHOLE + b",]"),
    ("openings to the horizon", b"[" * 100_000),
    ("objects to the horizon", b'{"a":' * 100_000),
    ("gzip", bytes.fromhex("1f8b08000000000000ff")),
]

# The message as a whole is refused, but its id stands there for a tolerant second reading.
DAMAGED_VALUE = [
    ("NaN", b"NaN"),
    ("Infinity", b"Infinity"),
    ("minus Infinity", b"-Infinity"),
    ("NaN deep inside", b'{"a":[{"b":NaN}]}'),
    ("half a surrogate pair", b'"\\ud800"'),
    ("the other half", b'"\\udc00"'),
    ("halves in the wrong order", b'"\\ude00\\ud83d"'),
    ("a half and a letter", b'"\\ud83d\\u0041"'),
    ("half a pair in a key", b'{"\\ud800":1}'),
    ("a surrogate as UTF-8", b'"\xed\xa0\x80"'),
    ("a pair as UTF-8 (CESU-8)", b'"\xed\xa0\xbd\xed\xb8\x80"'),
    ("a raw NUL in a string", b'"a\x00b"'),
    ("a raw tab in a string", b'"a\tb"'),
    ("a raw carriage return in a string", b'"a\rb"'),
    ("a raw vertical tab in a string", b'"a\x0bb"'),
    ("a raw form feed in a string", b'"a\x0cb"'),
    ("a raw file separator in a string", b'"a\x1cb"'),
    ("a terminal sequence in a string", b'"\x1b[2J"'),
    ("a raw control character in a key", b'{"a\x01":1}'),
    ("invalid UTF-8", b'"\xff"'),
    ("a cut UTF-8 sequence", b'"\xe2\x82"'),
    ("an overlong slash", b'"\xc0\xaf"'),
    ("an overlong NUL", b'"\xc0\x80"'),
    ("beyond the last code point", b'"\xf4\x90\x80\x80"'),
    ("Latin-1", '"é"'.encode("latin-1")),
    ("invalid UTF-8 in a key", b'{"\xff":1}'),
    ("twice as many arrays as allowed", b"[" * 257 + b"]" * 257),
    ("arrays just over the limit", b"[" * 129 + b"]" * 129),
    ("objects just over the limit", b'{"a":' * 129 + b"0" + b"}" * 129),
    ("arrays and objects in turn", b'[{"a":' * 100 + b"0" + b"}]" * 100),
    ("ten thousand arrays", b"[" * 10_000 + b"]" * 10_000),
]
DAMAGED_ELSEWHERE = [
    ("a byte order mark", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":%d,"method":"ping"}'),
    ("half a surrogate pair as method", b'{"jsonrpc":"2.0","id":%d,"method":"\\ud800"}'),
    ("invalid UTF-8 as method", b'{"jsonrpc":"2.0","id":%d,"method":"\xff"}'),
    ("a raw control character as method", b'{"jsonrpc":"2.0","id":%d,"method":"pi\x01ng"}'),
    ("NaN as params", b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":NaN}'),
    ("NaN as method", b'{"jsonrpc":"2.0","id":%d,"method":NaN}'),
    ("NaN in an unknown member", b'{"jsonrpc":"2.0","id":%d,"method":"ping","x":NaN}'),
    ("invalid UTF-8 in an unknown member", b'{"jsonrpc":"2.0","id":%d,"method":"ping","x":"\xff"}'),
    ("invalid UTF-8 in a member's name", b'{"jsonrpc":"2.0","id":%d,"method":"ping","\xff":1}'),
    ("NaN before the id", b'{"x":NaN,"jsonrpc":"2.0","id":%d,"method":"ping"}'),
    (
        "NaN in a tool's arguments",
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","arguments":{"x":NaN}}}',
    ),
]


def in_ping(label: str, value: bytes, codes: tuple[int, ...], **more: Any) -> Case:
    number = fresh()
    return Case(f"{label}, in params", in_params(value, number), codes, number, **more)


def in_encoding(encoding: str) -> Case:
    """A whole message, but not in UTF-8; Python's reader would guess the encoding and read it."""
    number = fresh()
    line = in_params(b"1", number).decode().encode(encoding)
    return Case(f"encoded in {encoding}", line, (PARSE,), number, id_recoverable=True)


def strange_id(label: str, text: bytes, value: str) -> Case:
    line = b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % text
    return Case(f"an id that is {label}", line, (PARSE,), value, id_recoverable=True)


UNPARSEABLE: list[Case] = [
    *lines(NO_OBJECT, (PARSE,)),
    *(in_ping(label, value, (PARSE,), id_recoverable=True) for label, value in DAMAGED_VALUE),
    *lines(DAMAGED_ELSEWHERE, (PARSE,), id_recoverable=True),
    *map(in_encoding, ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le")),
    strange_id("half a surrogate pair", b"\\ud800", "\ud800"),
    strange_id("a raw control character", b"\x01", "\x01"),
]

# Deep, but not too deep: 128 levels are allowed, the message's own included.
DEEP: list[Case] = [
    in_ping("a hundred arrays", b"[" * 100 + b"]" * 100, (OK,), revisions=HANDSHAKE_REVISIONS),
    in_ping("a hundred objects", b'{"a":' * 100 + b"0" + b"}" * 100, (OK,), revisions=HANDSHAKE_REVISIONS),
    in_ping("a string of brackets", b'"' + b"[" * 10_000 + b'"', (OK,), revisions=HANDSHAKE_REVISIONS),
]
