"""The bad-bytes corpus: lines a server may find on its standard input, each with the answer it deserves.

    for case in cases("2025-06-18"):
        answer = ask(case.line)
        assert case.objection(answer) is None, case.label

The rules, in the order in which they apply:

1. what is no JSON is -32700, without an id unless a tolerant second reading finds one;
2. what is JSON but no message is -32600, with the id echoed when it is a string or an integer;
3. an ``id`` that is there and wrong still makes a request, never a notification;
4. notifications and responses are never answered, however wrong;
5. arrays are -32600, except in the one revision that has batches.

``ACCEPT`` and ``REJECT`` are JSON values rather than lines: see ``json_values``.
"""

from __future__ import annotations

from support.cases import ENVELOPE, INVALID, MISSING, OK, PARAMS, UNKNOWN, Case, both_eras, lines
from support.corpus_invalid import (
    BAD_IDS,
    BAD_PARAMS,
    NOT_REQUESTS,
    NOTIFICATIONS,
    ODD_BUT_READABLE,
    RESPONSES,
)
from support.corpus_unparseable import DEEP, UNPARSEABLE
from support.json_values import ACCEPT, REJECT, in_params
from support.schema_source import HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS

__all__ = ["ACCEPT", "CASES", "Case", "MISSING", "OK", "REJECT", "cases", "in_params"]

BATCHING = ("2025-03-26",)
NOT_BATCHING = tuple(revision for revision in REVISIONS if revision not in BATCHING)

# Unusual but right: nothing here may disturb a reader.
FINE: list[Case] = both_eras(
    [
        ("a plain request", b'{"jsonrpc":"2.0","id":%d,@}'),
        ("spaces around", b'   {"jsonrpc":"2.0","id":%d,@}   '),
        ("tabs around", b'\t{"jsonrpc":"2.0","id":%d,@}\t'),
        ("a carriage return behind", b'{"jsonrpc":"2.0","id":%d,@}\r'),
        ("a carriage return in front", b'\r{"jsonrpc":"2.0","id":%d,@}'),
        ("white space inside", b'{ \t"jsonrpc" : "2.0" ,\r"id" : %d , @ }'),
        ("members in another order", b'{@,"id":%d,"jsonrpc":"2.0"}'),
        ("an unknown member", b'{"jsonrpc":"2.0","id":%d,@,"x":{"y":[1]}}'),
        ("an empty key", b'{"":null,"jsonrpc":"2.0","id":%d,@}'),
        ("a key written with escapes", b'{"jsonrpc":"2.0","\\u0069d":%d,@}'),
        ("the version written with escapes", b'{"jsonrpc":"\\u0032.0","id":%d,@}'),
        ("the id twice, the last counts", b'{"jsonrpc":"2.0","id":5,"id":%d,@}'),
        ("the method twice, the last counts", b'{"jsonrpc":"2.0","id":%d,"method":"acme/none",@}'),
        ("other members differ in case only", b'{"jsonrpc":"2.0","id":%d,@,"ID":[],"Method":0,"JSONRPC":1}'),
        ("line separators in a string", '{"jsonrpc":"2.0","id":%d,@,"x":"a\u2028b\u2029c\u0085d"}'.encode()),
        ("an escaped newline in a string", b'{"jsonrpc":"2.0","id":%d,@,"x":"a\\nb\\u000ac"}'),
        ("an escaped NUL in a string", b'{"jsonrpc":"2.0","id":%d,@,"x":"\\u0000"}'),
        (
            "every plane of Unicode",
            '{"jsonrpc":"2.0","id":%d,@,"x":"é\u4e2d\U0001f600\U0010ffff\uffff"}'.encode(),
        ),
        ("a message of 256 KiB", b'{"jsonrpc":"2.0","id":%d,@,"x":"' + b"x" * 262_144 + b'"}'),
    ]
)

PING = b'{"jsonrpc":"2.0","id":%s,"method":"ping"}'

GOOD_IDS: list[Case] = [
    Case(f"id {label}", PING % text, (OK,), value, revisions=HANDSHAKE_REVISIONS)
    for label, text, value in (
        ("minus seven", b"-7", -7),
        ("just beyond a double", b"9007199254740993", 2**53 + 1),
        ("the last of 63 bits", b"9223372036854775807", 2**63 - 1),
        ("the first beyond 63 bits", b"9223372036854775808", 2**63),
        ("a digit in quotes", b'"7"', "7"),
        ("a space", b'" "', " "),
        ("the word null", b'"null"', "null"),
        ("an escaped NUL", b'"\\u0000"', "\0"),
        ("with escapes", b'"\\"\\\\\\n"', '"\\\n'),
        ("not ASCII", '"é\U0001f600"'.encode(), "é\U0001f600"),
        ("an escaped pair", b'"\\ud83d\\ude01"', "\U0001f601"),
        ("of 200 letters", b'"' + b"k" * 200 + b'"', "k" * 200),
    )
]

BLANK: list[Case] = lines(
    [
        ("an empty line", b""),
        ("a space", b" "),
        ("spaces", b"        "),
        ("a tab", b"\t"),
        ("a carriage return", b"\r"),
        ("all of them", b" \t \r \t\r"),
    ],
    (None,),
)

# A method nobody knows is a request all the same.
CALL = b'{"jsonrpc":"2.0","id":%%d,"method":"%s"}'
WRAPPED_CALL = b'{"jsonrpc":"2.0","id":%%d,"method":"%s","params":{%s}}'
OLD_VERBS = ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe")

UNKNOWN_METHODS: list[Case] = [
    *lines(
        [
            ("an unknown method", CALL % b"acme/none"),
            ("a method in capitals", CALL % b"PING"),
            ("a method and a space", CALL % b"ping "),
            ("a method and a NUL", CALL % b"ping\\u0000"),
            ("a method reserved by JSON-RPC", CALL % b"rpc.discover"),
            ("a method of Python", CALL % b"__class__"),
        ],
        (UNKNOWN,),
        revisions=HANDSHAKE_REVISIONS,
    ),
    *lines(
        [("an empty method", CALL % b""), ("a method of 64 KiB", CALL % (b"m" * 65_536))],
        (UNKNOWN, INVALID),
        revisions=HANDSHAKE_REVISIONS,
    ),
    *lines(
        [
            (f"{method} in the modern envelope", WRAPPED_CALL % (method.encode(), ENVELOPE))
            for method in ("acme/none", *OLD_VERBS)
        ],
        (UNKNOWN,),
        revisions=(MODERN_REVISION,),
    ),
]

VERSION, CAPABILITIES = (
    b'"io.modelcontextprotocol/protocolVersion":',
    b'"io.modelcontextprotocol/clientCapabilities":',
)
DISCOVER = b'{"jsonrpc":"2.0","id":%%d,"method":"server/discover","params":{"_meta":{%s}}}'
# An envelope that is there but malformed is the newest revision's business, never an older one's.
BAD_ENVELOPES: list[Case] = [
    *lines(
        [
            ("version a number", DISCOVER % (VERSION + b"20260728," + CAPABILITIES + b"{}")),
            ("version null", DISCOVER % (VERSION + b"null," + CAPABILITIES + b"{}")),
            ("version an array", DISCOVER % (VERSION + b'["2026-07-28"],' + CAPABILITIES + b"{}")),
            ("capabilities missing", DISCOVER % (VERSION + b'"2026-07-28"')),
            ("capabilities null", DISCOVER % (VERSION + b'"2026-07-28",' + CAPABILITIES + b"null")),
            ("capabilities an array", DISCOVER % (VERSION + b'"2026-07-28",' + CAPABILITIES + b"[]")),
            ("capabilities a string", DISCOVER % (VERSION + b'"2026-07-28",' + CAPABILITIES + b'"all"')),
        ],
        (PARAMS,),
        revisions=(MODERN_REVISION,),
    ),
    *lines(
        [
            ("version of the future", DISCOVER % (VERSION + b'"2099-01-01",' + CAPABILITIES + b"{}")),
            ("version empty", DISCOVER % (VERSION + b'"",' + CAPABILITIES + b"{}")),
            ("version of the handshake", DISCOVER % (VERSION + b'"2025-06-18",' + CAPABILITIES + b"{}")),
        ],
        (-32022,),
        revisions=(MODERN_REVISION,),
    ),
]

PONG = b'{"jsonrpc":"2.0","id":%s,"result":{}}'
EVENT = b'{"jsonrpc":"2.0","method":"acme/event"}'

ARRAYS: list[Case] = [
    *lines([("an empty array", b"[]"), ("an empty array with a space", b"[ ]")], (INVALID,)),
    *lines(
        [
            ("an array with a request", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'),
            ("an array with two requests", b"[%s,%s]" % (PING % b"1", PING % b"2")),
            ("an array with a notification", b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]'),
            ("an array with a response", b'[{"jsonrpc":"2.0","id":1,"result":{}}]'),
            ("an array with a number", b"[1]"),
            ("an array with null", b"[null]"),
            ("an array with an empty array", b"[[]]"),
            ("an array with an empty object", b"[{}]"),
        ],
        (INVALID,),
        revisions=NOT_BATCHING,
    ),
    *lines(
        [
            ("a batch of a request", b'[{"jsonrpc":"2.0","id":%d,"method":"ping"}]'),
            ("a batch of a request and a notification", b"[%s,%s]" % (PING % b"%d", EVENT)),
        ],
        (OK,),
        in_array=True,
        revisions=BATCHING,
    ),
    *lines(
        [
            ("a batch of a number", b"[1]"),
            ("a batch of null", b"[null]"),
            ("a batch of an empty object", b"[{}]"),
            ("a batch of an empty batch", b"[[]]"),
            ("a batch of a request with a null id", b'[{"jsonrpc":"2.0","id":null,"method":"ping"}]'),
            ("a batch of an old request", b'[{"jsonrpc":"1.0","id":%d,"method":"ping"}]'),
        ],
        (INVALID,),
        in_array=True,
        revisions=BATCHING,
    ),
    *lines(
        [
            ("a batch of a notification", b'[{"jsonrpc":"2.0","method":"acme/event"}]'),
            ("a batch of responses", b"[%s,%s]" % (PONG % b"987701", PONG % b"987702")),
        ],
        (None,),
        revisions=BATCHING,
    ),
]

CASES: list[Case] = [
    *FINE,
    *GOOD_IDS,
    *BLANK,
    *UNPARSEABLE,
    *DEEP,
    *NOT_REQUESTS,
    *BAD_IDS,
    *BAD_PARAMS,
    *NOTIFICATIONS,
    *RESPONSES,
    *ODD_BUT_READABLE,
    *UNKNOWN_METHODS,
    *BAD_ENVELOPES,
    *ARRAYS,
]


def cases(revision: str) -> list[Case]:
    """The cases that hold in a revision."""
    return [case for case in CASES if revision in case.revisions]
