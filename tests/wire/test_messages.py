"""wire/messages.py: the strict reader and the writer, by the corpus, by an independent judge and by properties."""

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from interlock.wire.errors import BadFrame, InvalidRequest, LocalError, ParseError, Refused
from interlock.wire.limits import Limits
from interlock.wire.messages import (
    Frame,
    encode,
    encode_call,
    encode_error,
    encode_notice,
    encode_result,
    error_of,
    id_of_beginning,
    is_batch,
    read_batch,
    read_frame,
)
from support.corpus import ACCEPT, CASES, REJECT, in_params
from support.properties import JSON, JSON_OBJECTS, TEXT, many

IDS = st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"), max_size=40)
METHODS = TEXT


def refused(line, limits=None):
    with pytest.raises(BadFrame) as caught:
        read_frame(line, limits) if limits else read_frame(line)
    return caught.value


# --- what is written can be read ---


@many()
@given(IDS, METHODS, JSON_OBJECTS | st.none())
def test_a_call_comes_back(id, method, params):
    frame = read_frame(encode_call(id, method, params))
    assert (frame.id, type(frame.id), frame.method) == (id, type(id), method)
    assert frame.result is UNSET and frame.error is UNSET
    assert (None if frame.params is UNSET else msgspec.json.decode(frame.params)) == params


@many()
@given(METHODS, JSON_OBJECTS | st.none())
def test_a_notification_comes_back(method, params):
    frame = read_frame(encode_notice(method, params))
    assert (frame.id, frame.method) == (UNSET, method)
    assert (None if frame.params is UNSET else msgspec.json.decode(frame.params)) == params


@many()
@given(IDS, JSON_OBJECTS)
def test_a_result_comes_back(id, result):
    frame = read_frame(encode_result(id, result))
    assert (frame.id, frame.method, frame.error) == (id, UNSET, UNSET)
    assert msgspec.json.decode(frame.result) == result


@many()
@given(IDS | st.none(), st.integers(-(2**31), 2**31), TEXT.filter(str.isprintable), JSON)
def test_an_error_comes_back(id, code, message, data):
    frame = read_frame(encode_error(id, Refused(message, data, code=code)))
    assert frame.id == (UNSET if id is None else id)  # an unreadable id is left out, never null (BASE-12)
    told = error_of(frame, {})
    assert (told.code, told.message, told.data) == (code, message, data)


@many()
@given(st.text(st.characters(codec="utf-8"), max_size=1000))
def test_the_message_of_an_error_is_one_short_line(message):
    # basic/index: a concise single sentence, whatever of the peer's own text stands in it.
    told = error_of(read_frame(encode_error(1, Refused(message))), {}).message
    assert len(told) <= 500
    assert len(told.splitlines()) <= 1


ENDLESS: dict[str, object] = {}
ENDLESS["again"] = ENDLESS


@pytest.mark.parametrize("odd", [[object()], ["half a character: \ud83d"], [10**5000], [{(1, 2): 3}], [ENDLESS]])
def test_what_cannot_be_said_is_the_callers_mistake(odd):
    with pytest.raises(LocalError, match="x: this cannot be said in JSON"):
        encode_call(1, "x", {"a": odd})
    with pytest.raises(LocalError, match="x: this cannot be said in JSON"):
        encode_notice("x", {"a": odd})


@many()
@given(JSON)
def test_what_is_encoded_stands_on_one_line(value):
    data = encode({"value": value, "raw": Raw(json.dumps(value, indent=1, ensure_ascii=False).encode())})
    assert b"\n" not in data
    assert json.loads(data) == {"value": value, "raw": value}


def test_line_breaks_of_forwarded_bytes_are_taken_out():
    assert encode({"raw": Raw(b'{\n "a" : [1,\n2] }')}) == b'{"raw":{"a":[1,2]}}'


def test_an_error_echoes_an_id_of_any_size():
    # What was refused because of its id is answered with that very id (BASE-03).
    huge = 10**400
    assert json.loads(encode_error(huge, InvalidRequest("no")))["id"] == huge


def test_an_error_without_data_has_no_data():
    assert json.loads(encode_error(1, ParseError("no")))["error"] == {"code": -32700, "message": "no"}


# --- nothing but BadFrame ---


@many(500)
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"{")
@example(b"")
@example(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}')
@example(b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"\xff"}}')
def test_any_bytes_are_a_frame_or_a_bad_frame(data):
    try:
        assert isinstance(read_frame(data), Frame)
    except BadFrame as bad:
        answer_is_right(bad)


def answer_is_right(bad: BadFrame) -> None:
    """What a server would send: nothing, or an error of JSON-RPC with an id that is one, or without any."""
    if bad.refusal is None:
        return
    assert bad.refusal.code in (-32700, -32600)
    answer = json.loads(encode_error(bad.id, bad.refusal))
    assert answer.get("id", "") is not None
    assert type(answer.get("id", "")) in (int, str)


@many(300)
@given(JSON)
def test_any_json_is_a_frame_or_a_bad_frame(value):
    try:
        read_frame(encode(value))
    except BadFrame as bad:
        answer_is_right(bad)


# --- an independent judge ---

MISSING = object()
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "2.0", "2.0", "1.0", 2, None]),
        "id": IDS | st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | JSON_OBJECTS,
        "method": st.sampled_from(["ping", "", "notifications/x"]) | st.none() | st.integers(),
        "params": JSON,
        "result": JSON,
        "error": JSON | st.just({"code": -1, "message": "no"}),
        "extra": JSON,
    },
)


def kind_of(members: dict) -> str:
    """request, notification, response, or why it is none: by JSON-RPC 2.0 §4-5 and BASE-01 to BASE-14."""
    id, method = members.get("id", MISSING), members.get("method", MISSING)
    good_id = type(id) is str or type(id) is int
    if method is MISSING and ("result" in members or "error" in members):
        proper = good_id or ("error" in members and (id is None or id is MISSING))
        return "response" if proper and members.get("jsonrpc") == "2.0" else "silence"
    if type(method) is str and id is MISSING:
        return "notification" if members.get("jsonrpc") == "2.0" else "silence"
    if members.get("jsonrpc") == "2.0" and type(method) is str and good_id:
        return "request"
    if method is MISSING and id is not MISSING:
        return "open"  # a request that lost its method, or a response that lost its result: nobody can tell
    return "refused"


@many(600)
@given(MEMBERS)
@example({"jsonrpc": "2.0", "result": {}})
@example({"jsonrpc": "2.0", "id": None, "result": {}})
@example({"jsonrpc": "2.0", "id": None, "method": "ping"})
@example({"jsonrpc": "2.0", "id": 1})
@example({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}})
@example({"jsonrpc": "2.0", "id": True, "method": "ping"})
@example({"jsonrpc": "2.0", "id": 1.0, "method": "ping"})
def test_every_object_is_judged_as_json_rpc_says(members):
    kind = kind_of(members)
    line = json.dumps(members).encode()
    if kind in ("request", "notification", "response"):
        frame = read_frame(line)
        assert (frame.method is not UNSET) == (kind != "response")
        assert kind != "request" or frame.id == members["id"]
        return
    bad = refused(line)
    if kind == "silence":
        assert bad.refusal is None, "a broken notification or response is never answered (BASE-14)"
    elif kind == "refused" or bad.refusal is not None:
        id = members.get("id")
        assert isinstance(bad.refusal, InvalidRequest)
        assert bad.id == (id if type(id) in (int, str) and (type(id) is int or id.isprintable()) else None)


# --- the corpus of bad bytes ---

# Blank lines and arrays are dealt with before a frame is read.
UNREADABLE = [
    case for case in CASES if {*case.codes} <= {-32700, -32600, None} and case.line.strip() and not is_batch(case.line)
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.label)
def test_the_reader_gives_every_bad_line_the_answer_it_deserves(case):
    try:
        frame = read_frame(case.line)
    except BadFrame as bad:
        answer = None if bad.refusal is None else json.loads(encode_error(bad.id, bad.refusal))
        assert case.objection(answer) is None
    else:
        if None in case.codes:
            assert frame.method is UNSET or frame.id is UNSET, "it would be answered"
        else:
            with pytest.raises(msgspec.DecodeError):  # raw params are judged by whoever reads them
                msgspec.json.decode(frame.params)


@pytest.mark.parametrize("value", ACCEPT, ids=lambda value: value[:30].decode("latin-1"))
def test_every_value_of_json_passes_in_params(value):
    assert read_frame(in_params(value)).method == "ping"


@pytest.mark.parametrize("value", REJECT, ids=lambda value: value[:30].decode("latin-1"))
def test_what_is_no_value_of_json_is_refused(value):
    # Some of these are only found out when params are read: raw members are skipped by their outline alone.
    try:
        frame = read_frame(in_params(value))
    except BadFrame as bad:
        assert isinstance(bad.refusal, ParseError)
    else:
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
            msgspec.json.decode(frame.params)


# --- limits ---


def nested(depth: int, text: bytes = b"1") -> bytes:
    """A request in which `text` stands inside `depth` brackets, the two of the frame among them."""
    inner = depth - 2
    return b'{"jsonrpc":"2.0","id":5,"method":"m","params":{"x":%s%s%s}}' % (b"[" * inner, text, b"]" * inner)


def test_depth_is_bounded_exactly():
    limits = Limits(depth=20)
    assert read_frame(nested(20), limits).id == 5
    bad = refused(nested(21), limits)
    assert isinstance(bad.refusal, ParseError)
    assert bad.id == 5


def depth_of(text: str) -> int:
    """Written for this test: walks the characters."""
    depth = deepest = 0
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = not escaped and character == "\\"
        elif character == '"':
            quoted = True
        elif character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def wrapped(kinds: list[str], inside: str, beside: str) -> str:
    for kind in kinds:
        inside = f"[{beside},{inside}]" if kind == "[" else f'{{"a":{beside},"b":{inside}}}'
    return inside


@many(300)
@given(
    st.lists(st.sampled_from("[{"), max_size=16),
    st.sampled_from(["1", '"[{"', r'"\\"', r'"\"[[["', "[]", "{}"]),
    st.sampled_from(["0", '"]}"', "[{}]", '{"a":[]}']),
    st.integers(3, 16),
)
@example(["{", "["] * 6, "1", "0", 10)
@example(["[", "{"] * 6, "1", "0", 10)
def test_any_mixture_of_brackets_has_its_depth(kinds, inside, beside, limit):
    line = f'{{"jsonrpc":"2.0","id":5,"method":"m","params":{wrapped(kinds, inside, beside)}}}'
    if depth_of(line) <= limit:
        assert read_frame(line.encode(), Limits(depth=limit)).id == 5
    else:
        assert isinstance(refused(line.encode(), Limits(depth=limit)).refusal, ParseError)


@pytest.mark.parametrize("text", [b'"' + b"[" * 500 + b'"', rb'"\"[[[[' + b"{" * 300 + b'"', rb'"\\"'])
def test_brackets_in_strings_are_no_depth(text):
    assert read_frame(nested(20, text), Limits(depth=20)).id == 5


def test_many_shallow_brackets_are_no_depth():
    line = b'{"jsonrpc":"2.0","id":5,"method":"m","params":{"x":[%s]}}' % b",".join([b"[{}]"] * 500)
    assert read_frame(line, Limits(depth=20)).id == 5


def test_nesting_that_would_overflow_the_stack_is_refused():
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        depth = 200_000
        line = b'{"jsonrpc":"2.0","id":5,"method":"m","params":%s1%s}' % (opening * depth, closing * depth)
        assert isinstance(refused(line).refusal, ParseError)


def test_the_length_of_an_id_is_bounded():
    limits = Limits(id_bytes=10)
    assert read_frame(encode_call("i" * 10, "m", None), limits).id == "i" * 10
    assert isinstance(refused(encode_call("i" * 11, "m", None), limits).refusal, InvalidRequest)


def test_a_broken_frame_that_is_huge_is_not_read_twice():
    # Finding the id would cost a second, slow parse of a megabyte and more.
    line = b'{"jsonrpc":"1.0","id":5,"method":"m","x":"%s"}' % (b"x" * (1024 * 1024))
    bad = refused(line)
    assert isinstance(bad.refusal, InvalidRequest)
    assert bad.id is None


def test_the_type_names_of_the_implementation_are_not_told():
    assert "`" not in refused(b'{"jsonrpc":"2.0","id":1,"method":5}').refusal.message


# --- batches ---


def test_a_batch_is_told_by_its_first_character():
    assert is_batch(b"[]") and is_batch(b" \t[1]")
    assert not is_batch(b'{"a":[]}') and not is_batch(b"") and not is_batch(b'"["')


def test_each_element_of_a_batch_is_judged_alone():
    line = b'[{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"jsonrpc":"2.0","method":"b"}, {"id":9,"method":"c"}]'
    first, second, third, fourth = read_batch(line)
    assert (first.id, first.method) == (1, "a")
    assert isinstance(second, BadFrame) and second.id is None
    assert third.method == "b"
    assert isinstance(fourth, BadFrame) and fourth.id == 9


@pytest.mark.parametrize(
    ("line", "kind"),
    [(b"[]", InvalidRequest), (b"[1,2,3]", InvalidRequest), (b"[", ParseError), (b"[\xff]", ParseError)],
)
def test_a_batch_is_refused_as_a_whole(line, kind):
    with pytest.raises(BadFrame) as caught:
        read_batch(line, Limits(batch=2))
    assert isinstance(caught.value.refusal, kind)
    assert caught.value.id is None


def test_the_depth_of_a_batch_is_bounded_too():
    """The decoder gives up on the whole, or the reader on the element, depending on how deep the decoder can read."""
    for levels in (1_000, 200_000, 2_000_000):
        try:
            found = read_batch(b"[" * levels + b"]" * levels)
        except BadFrame as bad:
            found = [bad]
        assert [type(bad.refusal) for bad in found] == [ParseError]
    [bad] = read_batch(b"[" + nested(30) + b"]", Limits(depth=20))
    assert isinstance(bad, BadFrame)


# --- the id of what is too long to be read ---


@pytest.mark.parametrize(
    ("beginning", "id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"aaaa', 7),
        (b'  { "id" : "seven" , "jsonrpc": "2.0"', "seven"),
        (b'{"method":"m","jsonrpc":"2.0","id":-3,"params', -3),
        (b'{"jsonrpc":"2.0","params":{"id":7},"id":8', None),
        (b'{"jsonrpc":"2.0","id":7', None),  # cut within the number, perhaps
        (b'{"jsonrpc":"2.0","id":"se', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method', None),
        (b'{"jsonrpc":"2.0","id":null,"method', None),
        (b'{"jsonrpc":"2.0","id":"a\\"b","method', None),
        (b'{"jsonrpc":"2.0","id":"\xff","method', None),
        (b'[{"jsonrpc":"2.0","id":7,"method"', None),
        (b"", None),
    ],
)
def test_the_id_of_a_beginning(beginning, id):
    assert id_of_beginning(beginning) == id


@many(300)
@given(st.binary(max_size=100))
def test_any_beginning_has_an_id_or_none(beginning):
    assert isinstance(id_of_beginning(b'{"id":' + beginning), int | str | None)


# --- a broken response still says whose it was ---


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', 7),
        (b'{"id":"a","error":{}}', "a"),
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}', 7),
        (b'{"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":7,"result":%s1%s}' % (b"[" * 200, b"]" * 200), 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"result":{}}', None),
        (b"hello", None),
    ],
)
def test_the_call_that_a_broken_response_answers(line, answers):
    # Its caller is told at once instead of waiting for a deadline.
    assert refused(line).answers == answers


# --- errors of a peer ---


@pytest.mark.parametrize(
    "error",
    [b"null", b'"no"', b"[]", b"{}", b'{"code":"1","message":"no"}', b'{"code":1}', b'{"code":1.5,"message":""}'],
)
def test_a_malformed_error_is_none(error):
    assert error_of(read_frame(b'{"jsonrpc":"2.0","id":1,"error":%s}' % error), {}) is None


def test_an_error_is_raised_under_the_class_of_its_code():
    frame = read_frame(encode_error(1, Refused("no", {"a": 1}, code=-32600)))
    assert type(error_of(frame, {-32600: InvalidRequest})) is InvalidRequest
    assert type(error_of(frame, {})) is Refused
    assert error_of(frame, {}).data == {"a": 1}


def test_a_response_without_an_error_has_none():
    assert error_of(read_frame(encode_result(1, {})), {}) is None


# --- a name twice in one object ---

STRICT = Limits(strict_json=True)
TWICE = b'"params":{"name":"a","arguments":{"path":"/tmp","path":"/etc"}}}'


def test_of_two_members_with_one_name_the_last_counts_unless_it_is_strict():
    line = b'{"jsonrpc":"2.0","id":7,"method":"tools/call",' + TWICE
    assert msgspec.json.decode(read_frame(line).params)["arguments"] == {"path": "/etc"}
    bad = refused(line, STRICT)
    assert isinstance(bad.refusal, InvalidRequest) and "'path' occurs twice" in bad.refusal.message
    assert (bad.id, bad.answers) == (7, None)


def test_a_strict_reader_takes_what_has_every_name_once():
    line = encode_call(1, "tools/call", {"a": {"a": [1.5, 1e300, 10**400]}, "b": {"a": None}})
    assert read_frame(line, STRICT) is not None


def test_of_two_ids_neither_is_answered():
    bad = refused(b'{"jsonrpc":"2.0","id":7,"method":"ping","id":8}', STRICT)
    assert isinstance(bad.refusal, InvalidRequest) and bad.id is None


def test_a_notification_with_a_name_twice_is_not_answered_and_a_response_ends_its_call():
    assert refused(b'{"jsonrpc":"2.0","method":"x",' + TWICE, STRICT).refusal is None
    bad = refused(b'{"jsonrpc":"2.0","id":7,"result":{"a":1,"a":2}}', STRICT)
    assert (bad.refusal, bad.answers) == (None, 7)
    found = read_batch(
        b'[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"x",' + TWICE + b"]", STRICT
    )
    assert isinstance(found[0], Frame) and isinstance(found[1], BadFrame) and found[1].id == 8
