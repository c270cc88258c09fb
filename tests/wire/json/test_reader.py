"""wire/json/reader.py: what takes long is counted before it is decoded, and never changes what comes out."""

import ast
import json
import math
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, UnsetType

import interlock
from interlock import Client, Server
from interlock.protocol.input.callback import result_of
from interlock.revisions.table import NEWEST
from interlock.wire.errors import BadResult, InvalidParams
from interlock.wire.json import reader as json_reader
from interlock.wire.json.reader import JsonReader, TooManyFloats, needs_float_hook, read_json, read_own_json
from interlock.wire.messages import Frame
from interlock.wire.types.tools import CallToolParams
from support.properties import many

SLOW = [  # each takes msgspec 2 to 10 µs
    *("1e289", "1e300", "1E300", "1e+300", "-1e308", "1e0300", "1.7976931348623157e308", "1.5e299", "123e290"),
    *("1e-308", "5e-324", "2.2250738585072011e-308", "1.2345678901234567e-295", "0.001e-306"),
    *(
        "1.5000000000000000111e99",
        "1.5000000000000000111e-99",
        "1.50000000000000001110e150",
        "1.50000000000000001e-250",
    ),
]
MIDDLE = ["1e23", "2e23", "8E+23", "-4e23", "1e0023"]  # 0.4 µs, in five bytes
FAST = [
    *("0", "-1", "1.5", "12345", "0.12345678901234567", "1e22", "1e24", "3e23", "1.1e23", "1e-5", "1e-23"),
    *("1.2345678901234567e-05", "1.2345678901234567e-12", "6.02214076e23", "1.989e30", "1e100", "1e200", "1e-250"),
    *("1e288", "72353e282", "9.99999999e-288"),
    *("true", "false", "null", "1" * 300, "0." + "1" * 300),
]
TEXTS = ['"1e300"', '"\\"1e300"', '"a1e300b5e-324"', '"\\\\", "1e300"']


def array(number: str, count: int = 200) -> bytes:
    return f"[{','.join([number] * count)}]".encode()


# --- which numbers count ---


@pytest.mark.parametrize("number", SLOW + MIDDLE)
def test_a_slow_number_counts(number):
    spread = f"[{','.join([number] * 30)}]{' ' * 2000}".encode()
    assert needs_float_hook(spread)


@pytest.mark.parametrize("number", FAST + TEXTS)
def test_other_numbers_and_texts_do_not_count(number):
    assert not needs_float_hook(array(number))
    assert not needs_float_hook(b'{"a":' + array(number) + b',"b":[' + b"1e300," * 5 + b"0]}")


def test_base64_and_hexadecimal_digits_do_not_count():
    digits = "".join(f"{at:05}e{at % 1000:03}" for at in range(50_000))
    assert not needs_float_hook(json.dumps({"data": digits, "more": [digits[:500]] * 20}).encode())


def test_a_few_are_read_as_ever_and_more_in_a_longer_text():
    most = json_reader.MAX_SLOW_NUMBERS
    padding = " " * 100
    assert not needs_float_hook(array("1e300", most) + padding.encode())
    assert needs_float_hook(array("1e300", most + 1) + padding.encode())
    longer = " " * (json_reader.BYTES_PER_SLOW_NUMBER * 40)
    assert not needs_float_hook(array("1e300", most + 40) + longer.encode())
    assert needs_float_hook(array("1e300", most + 60) + longer.encode())


@pytest.mark.parametrize("number", SLOW + MIDDLE)
def test_no_text_brings_more_slow_numbers_to_the_fast_decoder_than_its_length_allows(number, monkeypatch):
    """What is counted is what msgspec is given, whatever stands around the numbers."""
    given_to_it: list[bytes] = []
    reader = JsonReader()
    monkeypatch.setattr(reader, "_decode", lambda data: given_to_it.append(bytes(data)))
    for around in ("{}", '{{"text":"1e300 \\" 5e-324","values":{}}}', ' [ [ ], {{ "e1e300":{} }} ] '):
        for count in (1, 8, 9, 50, 2000):
            data = around.format(array(number, count).decode()).encode()
            try:
                reader.decode(data)
            except TooManyFloats:
                pass
    for data in given_to_it:
        allowed = json_reader.MAX_SLOW_NUMBERS + len(data) // json_reader.BYTES_PER_SLOW_NUMBER
        short = len(data) <= json_reader.MIN_SCREENED
        assert short or data.decode().count(number + ",") <= allowed


class Texts(msgspec.Struct):
    name: str
    count: int = 0
    more: list[dict[str, int | None]] = []
    kept: Raw = Raw(b"")


@pytest.mark.parametrize(
    ("kind", "screened"),
    [
        *((Any, True), (float, True), (list[float | None], True), (dict[str, Any], True), (CallToolParams, True)),
        *((Texts, False), (str, False), (list[int], False), (dict[str, Raw], False), (list[Decimal], False)),
    ],
    ids=str,
)
def test_only_what_can_hold_floats_is_looked_through(kind, screened, monkeypatch):
    looked = []
    monkeypatch.setattr(json_reader, "needs_float_hook", lambda data, bounded: bool(looked.append(data)))
    for _ in range(2):
        with suppress(msgspec.ValidationError):
            JsonReader(kind).decode(array("1e300"))
    assert len(looked) == (2 if screened else 0)


# --- what is refused ---


def test_where_reading_them_one_by_one_takes_too_long_a_text_is_refused():
    with pytest.raises(TooManyFloats, match=r"too many numbers .*: 20000 in 120001 bytes \(limit 8012") as caught:
        read_json(array("1e300", 20_000))
    assert isinstance(caught.value, msgspec.ValidationError)
    assert read_own_json(array("1e300", 20_000)) == [1e300] * 20_000


def test_long_floats_are_never_too_many():
    longest = "1.7976931348623157e308"
    assert read_json(array(longest, 20_000)) == [float(longest)] * 20_000


def test_every_float_counts_once():
    for number in ("1.5", "1e5", "1.5e5", "-1.5E-5"):
        bare = array(number, 77) + b'[true,false,null,12,"1.5"]'
        assert json_reader._count_floats(json_reader.STRINGS.sub(b"", bare)) == 77


def test_a_text_that_is_not_json_is_refused_before_it_is_searched():
    endless = b"[" + b"1e300," * 100 + b'"' + b'\\"' * 200_000
    with pytest.raises(msgspec.DecodeError):
        read_json(endless)


# --- the same values and errors ---


class Point(msgspec.Struct):
    x: float
    y: float = 0.0
    tags: dict[str, Any] = {}


class Mixed(msgspec.Struct):
    name: str
    kept: Raw = Raw(b"")
    more: dict[str, Raw] | UnsetType = UNSET
    values: list[float] = []
    point: Point | None = None
    other: Any = None


class Custom:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Custom) and self.value == other.value


def custom(kind: type, value: Any) -> Any:
    if not isinstance(value, (int, float, list)):
        raise ValueError("not a number")
    return Custom(value)


class Holder(msgspec.Struct):
    custom: Custom
    by_number: dict[int, float] = {}


@dataclass
class Record:
    x: float
    name: Literal["a", "b"] = "a"
    other: tuple[float, ...] | None = None


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    x: float = 0.0
    kept: Raw = Raw(b"")


class Typed(TypedDict, total=False):
    x: float
    name: date
    tags: bytes


KINDS: list[Any] = [
    *(Any, dict[str, Any], list[float], list[Any], dict[int, float], dict[str, float | bytes | None]),
    *(list[int] | float | None, Point, Mixed, Record, Closed, Typed),
]
OUT_OF_RANGE = (b"1e999", b"-1e400")
NUMBERS = st.sampled_from(
    SLOW + MIDDLE + [number for number in FAST if number[0] in "-0123456789"] + ["1e999", "-1e400"]
)
NAMES = st.sampled_from(["x", "y", "tags", "name", "kept", "more", "values", "point", "other", "1", "-2", "1e5"])
TEXT = st.text(max_size=8).map(lambda text: json.dumps(text)) | st.sampled_from(['"\\ud83d\\ude00"', '"1e300"'])
DOCUMENTS = st.recursive(
    NUMBERS | TEXT | st.sampled_from(["true", "null"]),
    lambda inner: (
        st.lists(inner, max_size=5).map(lambda items: f"[{','.join(items)}]")
        | st.dictionaries(NAMES, inner, max_size=5).map(
            lambda found: "{" + ", ".join(f'"{name}":{value}' for name, value in found.items()) + "}"
        )
    ),
    max_leaves=12,
).map(str.encode)


def outcome(decode, data) -> Any:
    try:
        return comparable(decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return type(error)


def comparable(value: Any) -> Any:
    """With the signs of zeros and the types of numbers."""
    if isinstance(value, float):
        return ("float", value.hex())
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, msgspec.Struct):
        return [type(value), *(comparable(getattr(value, name)) for name in value.__struct_fields__)]
    if isinstance(value, dict):
        return [(comparable(key), comparable(each)) for key, each in value.items()]
    if isinstance(value, Record):
        return comparable(vars(value))
    return [comparable(each) for each in value] if isinstance(value, list | tuple) else (type(value), value)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@many()
@given(DOCUMENTS)
@example(b'{"name":"a","kept":[1e300, 1e999],"values":[1e300,5e-324,-0.0],"point":{"x":1,"tags":{"a":1e-320}}}')
@example(b'{"name":"a","name":"b","unknown":1e999,"more":{"x":1e300}}')
@example(b'{"x":"1e300"}')
@example(b'{"x":1e300,"kept":[1e999],"name":"b","other":[1,5e-324]}')
@example(b'{"x":1e300,"name":"2026-07-28","tags":"YQ=="}')
def test_both_decoders_read_the_same(kind, data):
    careful = outcome(json_reader._careful_decoder(kind, None), data)
    if careful is msgspec.ValidationError and any(each in data for each in OUT_OF_RANGE):
        return  # msgspec passes over members that the type does not have, with all that is in them
    assert careful == outcome(msgspec.json.Decoder(kind).decode, data)


@pytest.mark.parametrize("kind", [Any, dict[str, Any], list[float]], ids=str)
@many()
@given(DOCUMENTS, st.integers(0, 400), st.binary(max_size=3))
def test_both_decoders_refuse_the_same(kind, data, at, put):
    """Of untyped data; where a type is wrong and the JSON is too, either may be found first."""
    broken = data[: at % (len(data) + 1)] + put + data[at % (len(data) + 1) + 1 :]
    careful, plain = (
        outcome(each, broken) for each in (json_reader._careful_decoder(kind, None), msgspec.json.Decoder(kind).decode)
    )
    if kind == list[float] and isinstance(careful, type) and isinstance(plain, type):
        return
    assert careful == plain


@many()
@given(DOCUMENTS, st.sampled_from(SLOW))
def test_a_reader_gives_what_the_decoder_gives_past_the_bound_too(data, slow):
    whole = b'{"a":' + data + b',"b":' + array(slow, 60) + b"}" + b" " * 200
    assert needs_float_hook(whole)
    assert outcome(read_json, whole) == outcome(msgspec.json.Decoder().decode, whole)


def test_custom_types_and_keys_of_numbers_are_read_past_the_bound():
    reader = JsonReader(Holder, dec_hook=custom)
    values = [1e300] * 100
    read = reader.decode(json.dumps({"custom": values, "by_number": {"1": 1e300, "-2": 5e-324}}).encode())
    assert (read.custom, read.by_number) == (Custom(values), {1: 1e300, -2: 5e-324})
    with pytest.raises(msgspec.ValidationError, match=r"not a number - at `\$.custom`"):
        reader.decode(json.dumps({"custom": {"a": values}}).encode())


def test_the_params_of_a_call_keep_their_arguments_raw():
    arguments = array("1e300", 300)
    data = b'{"name":"a","_meta":{"traceparent":' + array("1e300", 100) + b'},"arguments":' + arguments + b"}"
    params = JsonReader(CallToolParams).decode(data)
    assert (params.name, bytes(params.arguments)) == ("a", arguments)
    assert params.meta.traceparent == [1e300] * 100


class Priced(msgspec.Struct):
    price: Decimal
    other: Any = None


def test_a_decimal_loses_no_digit():
    digits = "0.12345678901234567890123456789"
    assert JsonReader(list[Decimal]).decode(array(digits, 100)) == [Decimal(digits)] * 100
    assert JsonReader(list[Decimal]).decode(array("1e300", 100)) == [Decimal("1e300")] * 100
    reader = JsonReader(Priced)
    assert reader.decode(f'{{"price":{digits},"other":{array("1.5", 100).decode()}}}'.encode()).price == Decimal(digits)
    with pytest.raises(TooManyFloats):
        reader.decode(f'{{"price":{digits},"other":{array("1e300", 100).decode()}}}'.encode())


class Deep(msgspec.Struct):
    inner: list[Mixed]


@pytest.mark.parametrize("kind", [list[Mixed], Deep, Mixed | None])
def test_raw_values_that_stand_deeper_beside_floats_are_read_up_to_the_bound(kind):
    few, many_ = (f'{{"name":"a","kept":[1e300],"values":{array("1e300", count).decode()}}}' for count in (7, 80))
    written = {list[Mixed]: "[{}]", Deep: '{{"inner":[{}]}}'}.get(kind, "{}")
    assert JsonReader(kind).decode(written.format(few).encode())
    with pytest.raises(TooManyFloats):
        JsonReader(kind).decode(written.format(many_).encode())


# --- on both sides of a connection ---


@asynccontextmanager
async def numbers():
    server = Server("numbers")

    @server.tool
    def total(values: list[float]) -> float:
        return math.fsum(values)

    @server.tool
    def same(value: Any) -> Any:
        return value

    async with Client(server) as client:
        yield client


async def test_a_call_with_many_slow_numbers_is_served():
    async with numbers() as client:
        result = await client.call_tool("total", {"values": [5e-324] * 400})
        assert (result.is_error, result.structured) == (False, 400 * 5e-324)
        result = await client.call_tool("same", {"value": [1e300] * 400})
        assert json.loads(result.content[0].text) == [1e300] * 400


async def test_a_call_with_too_many_is_refused_by_its_server():
    async with numbers() as client:
        for tool, arguments in (("total", {"values": [1e300] * 9_000}), ("same", {"value": [1e300] * 9_000})):
            with pytest.raises(InvalidParams, match="too many numbers"):
                await client.call_tool(tool, arguments)


def test_an_answer_with_too_many_is_refused_by_the_client():
    with pytest.raises(BadResult):
        result_of(Frame("2.0", 1, result=Raw(b'{"value":' + array("1e300", 9_000) + b"}")), "tools/call", NEWEST)
    found = result_of(Frame("2.0", 1, result=Raw(b'{"value":' + array("1e300", 400) + b"}")), "tools/call", NEWEST)
    assert found["value"] == [1e300] * 400


# --- everything that is decoded goes through it ---

SOURCE = Path(interlock.__file__).parent
PLAIN = {  # where msgspec itself decodes JSON: into types without floats and `Any`, or what this program has written
    "wire/messages.py": "frames, whose params and results stay raw",
    "wire/json/hash_collisions.py": "raw members",
    "wire/json/reader.py": "the reader",
    "wire/json/null_members.py": "raw members",
    "transport/http/server/stateless.py": "raw members, a text",
    "protocol/server/router.py": "raw members",
    "server/registry/forwarding.py": "raw members",
    "server/arguments/repair.py": "raw members",
    "server/tools/output_schema.py": "an author's schema",
    "server/arguments/explicit_schema.py": "an author's schema",
    "server/schema/builder.py": "an author's default",
    "auth/resource_server/guard.py": "the names of methods and tools",
    "transport/http/cluster/session.py": "frames",
    "transport/http/cluster/parked_runs.py": "frames, and states of its own",
    "transport/http/server/session.py": "an id and a reason",
    "transport/http/client/post_channel.py": "what it sends itself",
    "transport/http/cluster/event_log.py": "what workers wrote into their log",
    "auth/client/token_storage.py": "files of its own",
    "auth/client/token_record.py": "files of its own",
    "auth/authorization_server/authorize_endpoint.py": "tickets that it has sealed",
    "auth/authorization_server/user_login.py": "device cookies that it has sealed",
    "auth/authorization_server/client_store.py": "entries of its own",
    "auth/authorization_server/grant_store.py": "entries of its own",
    "client/era_cache.py": "a file of its own",
    "host/gate/pins.py": "files of its own",
    "host/gate/permissions.py": "files of its own",
}


def test_what_a_peer_sends_is_decoded_by_the_reader_alone():
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("msgspec.json.decode", "msgspec.json.Decoder")
    }
    assert found == set(PLAIN)
