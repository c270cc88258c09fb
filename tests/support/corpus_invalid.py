"""Lines that are JSON but no valid request: -32600, or silence where the line is no request at all."""

from __future__ import annotations

from support.cases import INVALID, OK, PARAMS, PARSE, Case, lines
from support.schema_source import HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS

__all__ = ["BAD_IDS", "BAD_PARAMS", "NOT_REQUESTS", "RESPONSES", "NOTIFICATIONS", "ODD_BUT_READABLE"]

PING = b'{"jsonrpc":"2.0","id":%s,"method":"ping"}'

# Neither an object nor, in most revisions, anything at all.
NOT_OBJECTS = [
    ("null", b"null"),
    ("true", b"true"),
    ("false", b"false"),
    ("zero", b"0"),
    ("a number", b"42"),
    ("a fraction", b"-1.5"),
    ("an empty string", b'""'),
    ("a string", b'"ping"'),
    ("a message in a string", b'"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"method\\":\\"ping\\"}"'),
    ("an empty object", b"{}"),
    ("an object with an empty key", b'{"":1}'),
    ("an object of something else", b'{"type":"ping"}'),
    ("only jsonrpc", b'{"jsonrpc":"2.0"}'),
    ("only params", b'{"jsonrpc":"2.0","params":{}}'),
    ("a number as method, no id", b'{"jsonrpc":"2.0","method":1}'),
    ("null as method, no id", b'{"jsonrpc":"2.0","method":null}'),
    ("an object as method, no id", b'{"jsonrpc":"2.0","method":{}}'),
    ("a message in a message", b'{"message":{"jsonrpc":"2.0","id":1,"method":"ping"}}'),
]

# The id is fine and comes back.
BAD_ENVELOPE = [
    ("no jsonrpc", b'{"id":%d,"method":"ping"}'),
    ("jsonrpc null", b'{"jsonrpc":null,"id":%d,"method":"ping"}'),
    ("jsonrpc a number", b'{"jsonrpc":2.0,"id":%d,"method":"ping"}'),
    ("jsonrpc an integer", b'{"jsonrpc":2,"id":%d,"method":"ping"}'),
    ("jsonrpc true", b'{"jsonrpc":true,"id":%d,"method":"ping"}'),
    ("jsonrpc an array", b'{"jsonrpc":["2.0"],"id":%d,"method":"ping"}'),
    ("jsonrpc an object", b'{"jsonrpc":{},"id":%d,"method":"ping"}'),
    ("jsonrpc empty", b'{"jsonrpc":"","id":%d,"method":"ping"}'),
    ("jsonrpc 1.0", b'{"jsonrpc":"1.0","id":%d,"method":"ping"}'),
    ("jsonrpc 2", b'{"jsonrpc":"2","id":%d,"method":"ping"}'),
    ("jsonrpc 2.0 and a space", b'{"jsonrpc":"2.0 ","id":%d,"method":"ping"}'),
    ("jsonrpc 2.1", b'{"jsonrpc":"2.1","id":%d,"method":"ping"}'),
    ("jsonrpc in capitals", b'{"JSONRPC":"2.0","id":%d,"method":"ping"}'),
    ("jsonrpc with a NUL behind", b'{"jsonrpc\\u0000":"2.0","id":%d,"method":"ping"}'),
    ("jsonrpc twice, the last wrong", b'{"jsonrpc":"2.0","jsonrpc":"1.0","id":%d,"method":"ping"}'),
    ("method null", b'{"jsonrpc":"2.0","id":%d,"method":null}'),
    ("method a number", b'{"jsonrpc":"2.0","id":%d,"method":1}'),
    ("method a fraction", b'{"jsonrpc":"2.0","id":%d,"method":1.5}'),
    ("method true", b'{"jsonrpc":"2.0","id":%d,"method":true}'),
    ("method an array", b'{"jsonrpc":"2.0","id":%d,"method":["ping"]}'),
    ("method an object", b'{"jsonrpc":"2.0","id":%d,"method":{"name":"ping"}}'),
    ("method in capitals", b'{"jsonrpc":"2.0","id":%d,"Method":"ping","params":{}}'),
    ("method with a NUL behind", b'{"jsonrpc":"2.0","id":%d,"method\\u0000":"ping","params":{}}'),
    ("method twice, the last wrong", b'{"jsonrpc":"2.0","id":%d,"method":"ping","method":7}'),
    ("everything wrong but the id", b'{"jsonrpc":1,"id":%d,"method":2,"params":3}'),
]

NOT_REQUESTS: list[Case] = [
    *lines(NOT_OBJECTS, (INVALID,)),
    *lines(BAD_ENVELOPE, (INVALID,)),
    Case("a string id comes back too", b'{"jsonrpc":"1.0","id":"s-1","method":"ping"}', (INVALID,), "s-1"),
    Case("the empty id comes back too", b'{"jsonrpc":"1.1","id":"","method":"ping"}', (INVALID,), ""),
    Case("zero comes back too", b'{"jsonrpc":"0.0","id":0,"method":"ping"}', (INVALID,), 0),
    Case("a negative id comes back too", b'{"jsonrpc":"0.1","id":-1,"method":"ping"}', (INVALID,), -1),
    Case("an id and nothing else", b'{"id":901}', (INVALID, None), 901),
    # Without a method this is a request that lost it, or a response that lost its result.
    Case("no method, no result", b'{"jsonrpc":"2.0","id":902}', (INVALID, None), 902),
    Case("no method, a wrong id", b'{"jsonrpc":"2.0","id":{}}', (INVALID, None)),
    Case("no method, but params", b'{"jsonrpc":"2.0","id":903,"params":{}}', (INVALID, None), 903),
]

# BASE-03: an id that is there but wrong makes no notification. No schema has room for it: it is not echoed.
BAD_IDS: list[Case] = [
    *lines(
        [
            ("id null", PING % b"null"),
            ("id true", PING % b"true"),
            ("id false", PING % b"false"),
            ("id a fraction", PING % b"1.5"),
            ("id a whole number written as a fraction", PING % b"1.0"),
            ("id in exponent form", PING % b"1e3"),
            ("id minus zero point zero", PING % b"-0.0"),
            ("id an array", PING % b"[]"),
            ("id an array with an id", PING % b"[1]"),
            ("id an object", PING % b"{}"),
            ("id an object with an id", PING % b'{"id":1}'),
            (
                "id null on a known notification",
                b'{"jsonrpc":"2.0","id":null,"method":"notifications/initialized"}',
            ),
            ("id false on an unknown method", b'{"jsonrpc":"2.0","id":false,"method":"acme/none"}'),
            ("id null and params an array", b'{"jsonrpc":"2.0","id":null,"method":"ping","params":[]}'),
            ("id twice, the last null", b'{"jsonrpc":"2.0","id":5,"id":null,"method":"ping"}'),
            ("id twice, the last an array", b'{"jsonrpc":"2.0","id":6,"id":[],"method":"ping"}'),
            ("id null, jsonrpc wrong", b'{"jsonrpc":"1.0","id":null,"method":"ping"}'),
        ],
        (INVALID,),
    ),
    Case("id of 400 digits", PING % (b"9" * 400), (INVALID,), int("9" * 400)),
    Case("id of 400 digits, negative", PING % (b"-" + b"8" * 400), (INVALID,), -int("8" * 400)),
    # Python turns no text this long into a number unless told to; nobody can be asked to echo it.
    Case("id of 5000 digits", PING % (b"7" * 5000), (INVALID, PARSE)),
]

# BASE-25: params is an object; for anything else both codes are allowed.
WRONG_PARAMS = {
    "null": b"null",
    "an empty array": b"[]",
    "an array": b"[1]",
    "a string": b'"x"',
    "zero": b"0",
    "a fraction": b"1.5",
    "true": b"true",
    "false": b"false",
}


def wrong_params(method: bytes, revisions: tuple[str, ...]) -> list[Case]:
    line = b'{"jsonrpc":"2.0","id":%%d,"method":"%s","params":%s}'
    rows = [(f"{method.decode()} with params {name}", line % (method, text)) for name, text in WRONG_PARAMS.items()]
    return lines(rows, (INVALID, PARAMS), revisions=revisions)


BAD_PARAMS: list[Case] = [
    *wrong_params(b"ping", HANDSHAKE_REVISIONS),
    *wrong_params(b"tools/call", REVISIONS),
    *wrong_params(b"server/discover", (MODERN_REVISION,)),
]


def told(method: str, params: bytes = b"") -> bytes:
    """A notification."""
    tail = b',"params":' + params if params else b""
    return b'{"jsonrpc":"2.0","method":"%s"%s}' % (method.encode(), tail)


CANCELLED, PROGRESS = "notifications/cancelled", "notifications/progress"

# BASE-14: a notification gets no answer, however wrong it is.
NOTIFICATIONS: list[Case] = [
    *lines(
        [
            ("an unknown notification", told("acme/event")),
            ("an unknown notification of ours", told("notifications/nothing")),
            ("a notification with an empty method", told("")),
            ("a request without its id", told("ping")),
            ("a call without its id", told("tools/call", b'{"name":"echo"}')),
            ("initialize without its id", told("initialize", b"{}")),
            ("params null", told("notifications/initialized", b"null")),
            ("params an array", told(CANCELLED, b"[1]")),
            ("params a string", told(CANCELLED, b'"1"')),
            ("cancelled without params", told(CANCELLED)),
            ("cancelled without an id", told(CANCELLED, b"{}")),
            ("cancelled with id null", told(CANCELLED, b'{"requestId":null}')),
            ("cancelled with an array", told(CANCELLED, b'{"requestId":[]}')),
            ("cancelled with an object", told(CANCELLED, b'{"requestId":{}}')),
            ("cancelled with a stranger", told(CANCELLED, b'{"requestId":"nobody"}')),
            ("cancelled with a reason of ten", told(CANCELLED, b'{"requestId":0,"reason":10}')),
            ("progress without a token", told(PROGRESS, b'{"progress":1}')),
            ("progress with a strange token", told(PROGRESS, b'{"progressToken":"no","progress":1}')),
            ("progress with a null token", told(PROGRESS, b'{"progressToken":null,"progress":1}')),
            ("progress that is a string", told(PROGRESS, b'{"progressToken":1,"progress":"half"}')),
            ("a notification only servers send", told("notifications/message", b'{"level":"info","data":1}')),
            ("id in capitals", b'{"jsonrpc":"2.0","ID":1,"method":"ping"}'),
            ("id in mixed case", b'{"jsonrpc":"2.0","Id":2,"method":"ping"}'),
            ("id with a NUL behind", b'{"jsonrpc":"2.0","id\\u0000":3,"method":"ping"}'),
            ("id with a space behind", b'{"jsonrpc":"2.0","id ":4,"method":"ping"}'),
        ],
        (None,),
    ),
    # Whether this is still a notification is a matter of taste; silence is the safer one.
    *lines(
        [
            ("a notification of JSON-RPC 1.0", b'{"jsonrpc":"1.0","method":"notifications/initialized"}'),
            ("a notification without jsonrpc", b'{"method":"notifications/initialized"}'),
        ],
        (None, INVALID),
    ),
]

ERROR = b'{"code":-32603,"message":"no"}'
# A response is never answered, or two peers could throw errors at each other for ever.
RESPONSES: list[Case] = [
    *lines(
        [
            ("a result for nobody", b'{"jsonrpc":"2.0","id":987654,"result":{}}'),
            ("a result for nobody, string id", b'{"jsonrpc":"2.0","id":"nobody","result":{}}'),
            ("an error for nobody", b'{"jsonrpc":"2.0","id":987655,"error":%s}' % ERROR),
            ("an error without id", b'{"jsonrpc":"2.0","error":%s}' % ERROR),
            ("an error with id null", b'{"jsonrpc":"2.0","id":null,"error":%s}' % ERROR),
            ("a result without id", b'{"jsonrpc":"2.0","result":{}}'),
            ("a result with id null", b'{"jsonrpc":"2.0","id":null,"result":{}}'),
            ("a result with a fraction as id", b'{"jsonrpc":"2.0","id":1.5,"result":{}}'),
            ("a result with an array as id", b'{"jsonrpc":"2.0","id":[],"result":{}}'),
            ("a result that is null", b'{"jsonrpc":"2.0","id":987656,"result":null}'),
            ("a result that is an array", b'{"jsonrpc":"2.0","id":987657,"result":[]}'),
            ("a result that is a string", b'{"jsonrpc":"2.0","id":987658,"result":"done"}'),
            ("an error that is null", b'{"jsonrpc":"2.0","id":987659,"error":null}'),
            ("an error that is a string", b'{"jsonrpc":"2.0","id":987660,"error":"no"}'),
            ("an error without code", b'{"jsonrpc":"2.0","id":987661,"error":{"message":"no"}}'),
            (
                "an error with a string as code",
                b'{"jsonrpc":"2.0","id":987662,"error":{"code":"1","message":"no"}}',
            ),
            ("result and error", b'{"jsonrpc":"2.0","id":987663,"result":{},"error":%s}' % ERROR),
            ("result and a null error", b'{"jsonrpc":"2.0","id":987664,"result":{},"error":null}'),
            ("error and a null result", b'{"jsonrpc":"2.0","id":987665,"result":null,"error":%s}' % ERROR),
        ],
        (None,),
    ),
    Case("a result of JSON-RPC 1.0", b'{"jsonrpc":"1.0","id":904,"result":{}}', (None, INVALID), 904),
    Case("a result without jsonrpc", b'{"id":905,"result":{}}', (None, INVALID), 905),
    Case(
        "method null beside a result",
        b'{"jsonrpc":"2.0","id":906,"method":null,"result":{}}',
        (None, INVALID),
        906,
    ),
]

# Not what a careful sender writes; a receiver may take it or refuse it, but it has to say so.
ODD_BUT_READABLE: list[Case] = [
    *lines(
        [
            ("a request with a result", b'{"jsonrpc":"2.0","id":%d,"method":"ping","result":{}}'),
            ("a request with an error", b'{"jsonrpc":"2.0","id":%%d,"method":"ping","error":%s}' % ERROR),
        ],
        (INVALID, OK),
        revisions=HANDSHAKE_REVISIONS,
    ),
    # The last of two counts; whether the first is looked at before it is dropped is the reader's choice.
    *lines(
        [
            ("the id twice, the first null", b'{"jsonrpc":"2.0","id":null,"id":%d,"method":"ping"}'),
            (
                "the version twice, the first a number",
                b'{"jsonrpc":2,"jsonrpc":"2.0","id":%d,"method":"ping"}',
            ),
            ("the method twice, the first a number", b'{"jsonrpc":"2.0","id":%d,"method":7,"method":"ping"}'),
            (
                "params twice, the first a number",
                b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":7,"params":{}}',
            ),
        ],
        (OK, INVALID, PARAMS),
        id_recoverable=True,
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "an id of thirty digits",
        PING % (b"6" * 30),
        (OK, INVALID),
        int("6" * 30),
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "an id of ten thousand letters",
        PING % (b'"' + b"i" * 10_000 + b'"'),
        (INVALID, OK),
        "i" * 10_000,
        id_recoverable=True,
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "the first id beyond 64 bits",
        PING % b"18446744073709551616",
        (INVALID, OK),
        2**64,
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "the last id below 64 bits",
        PING % b"-9223372036854775809",
        (INVALID, OK),
        -(2**63) - 1,
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "an id beyond any double",
        b'{"jsonrpc":"2.0","id":1e400,"method":"ping"}',
        (INVALID, PARSE),
        revisions=HANDSHAKE_REVISIONS,
    ),
    Case(
        "a number of 5000 digits in params",
        b'{"jsonrpc":"2.0","id":907,"method":"ping","params":{"x":%s}}' % (b"1" * 5000),
        (PARSE, INVALID, PARAMS, OK),
        907,
        id_recoverable=True,
        revisions=HANDSHAKE_REVISIONS,
    ),
]
