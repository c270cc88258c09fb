"""JSON of a peer, decoded at a bounded cost: the one place where bytes from outside become values.

msgspec reads most floats in 0.02 µs, but some in up to 10 µs: those whose power of ten is beyond its tables (`1e300`,
`5e-324`) and those so close to the middle of two floats that all digits count. A message made of them stops the event
loop 280 times as long as one of `1.5`. So such numbers are counted before a text is decoded:

- a few (`MAX_SLOW_NUMBERS`, and one for every `BYTES_PER_SLOW_NUMBER`) are read as ever;
- with more of them every float is read by Python, which takes 0.4 µs for any of them, to the same values;
- where that would take too long as well (`MAX_FLOATS`, and one for every `BYTES_PER_FLOAT`), the text is refused.

Only numbers count, not texts that look like them: base64 and hexadecimal digits are full of `3e27`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import islice
from string import ascii_letters
from typing import Any, Generic, TypeVar, overload

import msgspec
from msgspec import Raw

from ..lazy_regex import pattern
from .hash_collisions import Check, check_of, nodes_in

__all__ = [
    "STRINGS",
    "JsonReader",
    "TooManyFloats",
    "needs_float_hook",
    "read_json",
    "read_members",
    "read_own_json",
    "read_slow_json",
]

T = TypeVar("T")
DecHook = Callable[[type, Any], Any]

MAX_SLOW_NUMBERS = 8  # up to 10 µs each: together less than an empty call takes
BYTES_PER_SLOW_NUMBER = 512
MAX_FLOATS = 512  # 0.4 µs each
BYTES_PER_FLOAT = 16  # shorter than one with all its digits and such an exponent
MIN_SCREENED = 64  # bytes; what is shorter holds ten slow numbers at most
_MIN_DIGITS = 4  # of a slow number: 1e300

STRINGS = pattern(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_FLOATS = {msgspec.inspect.AnyType, msgspec.inspect.FloatType, msgspec.inspect.CustomType}
_NOT_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_ANY_DIGIT = bytes.maketrans(b"123456789E", b"000000000e")
_LOWER = bytes.maketrans(b"E", b"e")
_POINTS = bytes.maketrans(b"eE", b"..")
_NOT_IN_NUMBERS = bytes({*b"+-", *range(0x80, 256), *ascii_letters.encode()} - {*b"eE"})
_NOT_IN_FLOATS = b"0123456789+-"
_LONG = b"0" * 17 + b"e00"
_DIGITS_AND_POINTS = bytes.maketrans(b"123456789.", b"0000000000")
# Of numbers without signs: a pattern that begins with a letter is looked for several times as fast.
_BEYOND = pattern(rb"e0*(?:[3-9][0-9][0-9]|29[0-9]|289)")  # beyond the tables: from 1e289 up, or below 1e-307
_MIDDLE = pattern(  # enough digits to lie in the middle of two floats, and a large power
    rb"e(?<=[0-9.]{17}e)0*(?:[7-9][0-9](?![0-9])|1[0-9][0-9]|2(?:[0-7][0-9]|8[0-8]))"
)
_SHORT_MIDDLE = pattern(rb"e(?<=[1248]e)(?<![0-9.][1248]e)0*23(?![0-9])")  # exactly in the middle, the only short ones


class TooManyFloats(msgspec.ValidationError):
    """Reading the numbers of a text would take too long."""


class JsonReader(Generic[T]):
    """Like `msgspec.json.Decoder`, for what comes from outside: the same values and errors, at a bounded cost.

    Data that was accepted before is read again with `bounded=False`: it is never refused.
    """

    __slots__ = ("_bounded", "_careful", "_check", "_dec_hook", "_decode", "_holds_floats", "_screens", "type")

    @overload
    def __init__(self, type: type[T], *, dec_hook: DecHook | None = None, bounded: bool = True) -> None: ...
    @overload
    def __init__(
        self: JsonReader[Any], type: Any = Any, *, dec_hook: DecHook | None = None, bounded: bool = True
    ) -> None: ...
    def __init__(self, type: Any = Any, *, dec_hook: DecHook | None = None, bounded: bool = True) -> None:
        self.type = type
        self._bounded = bounded
        self._dec_hook = dec_hook
        self._decode: Callable[[bytes | Raw], T] = msgspec.json.Decoder(type, dec_hook=dec_hook).decode
        self._careful: Callable[[bytes], T] | None = None
        self._screens: bool | None = None
        """Is a text looked at before it is decoded? Found out with the first one: a server that starts does not look at
        its types."""
        self._holds_floats = False
        self._check: Check | None = None

    def decode(self, data: bytes | Raw) -> T:
        """Raises `msgspec.DecodeError` for what is not JSON, `msgspec.ValidationError` for what does not fit."""
        if len(data) <= MIN_SCREENED or self._screens is False:
            return self._decode(data)
        if self._screens is None:
            self._look_at_type()
            return self.decode(data)
        text = bytes(data)
        if self._check is not None:
            self._check(text)
        if not self._holds_floats or not needs_float_hook(text, self._bounded):
            return self._decode(data)
        if self._careful is None:
            self._careful = _careful_decoder(self.type, self._dec_hook)
        return self._careful(text)

    def _look_at_type(self) -> None:
        described = msgspec.inspect.type_info(self.type)
        self._holds_floats = not _FLOATS.isdisjoint(_kinds_in(described))
        self._check = check_of(described) if self._bounded else None
        self._screens = self._holds_floats or self._check is not None


# --- how long it would take -----------------------------------------------------------------------


def needs_float_hook(data: bytes, bounded: bool = True) -> bool:
    """Has it more slow numbers than are read as ever? The quickest looks come first, and most texts end there.

    Raises `TooManyFloats` if `bounded`, and `msgspec.DecodeError` for what might have such numbers and is not JSON.
    """
    bound = MAX_SLOW_NUMBERS + len(data) // BYTES_PER_SLOW_NUMBER
    if len(data.translate(None, _NOT_DIGITS)) <= _MIN_DIGITS * bound:
        return False
    if data.count(b"e") + data.count(b"E") <= bound:
        return False
    if data.translate(_ANY_DIGIT, _NOT_IN_NUMBERS).count(b"0e00") <= bound or _count_slow(data, bound + 1) <= bound:
        return False
    msgspec.json.decode(data, type=Raw)  # looking for the end of a text that has none would take long
    bare = STRINGS.sub(b"", data)
    if _count_slow(bare, bound + 1) <= bound:
        return False
    if bounded:
        _check_floats(_count_floats(bare), len(data))
    return True


def _count_slow(text: bytes, most: int) -> int:
    """How many slow numbers there are; from `most` on it does not matter how many more."""
    signless = text.translate(_LOWER, b"+-")
    found = _count(_BEYOND, signless, most)
    if found < most and _LONG in signless.translate(_DIGITS_AND_POINTS):
        found += _count(_MIDDLE, signless, most)
    if found < most:
        found += _count(_SHORT_MIDDLE, text.translate(_LOWER, b"+"), most)  # 1e-23 is not one of them
    return found


def _count(wanted: re.Pattern[bytes], text: bytes, most: int) -> int:
    return sum(1 for _ in islice(wanted.finditer(text), most))


def _count_floats(bare: bytes) -> int:
    """Of a number only its point and its `e` are kept, side by side: each group is a float."""
    numbers = bare.replace(b"true", b"").replace(b"false", b"")
    return numbers.translate(_POINTS, _NOT_IN_FLOATS).replace(b"..", b".").count(b".")


def _check_floats(floats: int, size: int) -> None:
    bound = MAX_FLOATS + size // BYTES_PER_FLOAT
    if floats > bound:
        told = f"too many numbers with a fraction or an exponent: {floats} in {size} bytes (limit {bound}"
        raise TooManyFloats(f"{told} where some are beyond 1e288 or below 1e-307): write those as text, or send fewer")


# --- the decoder without the slow path ------------------------------------------------------------


def _careful_decoder(type: Any, dec_hook: DecHook | None) -> Callable[[bytes], Any]:
    """msgspec has a hook for floats whose type is not said: so all is read without types, then given them."""
    if type is Any or type == dict[str, Any]:
        return msgspec.json.Decoder(type, dec_hook=dec_hook, float_hook=_read_float).decode
    kinds = _kinds_in(msgspec.inspect.type_info(type))
    read = read_slow_json if msgspec.inspect.RawType not in kinds else _members_decoder(type)
    if msgspec.inspect.DecimalType in kinds or read is None:
        return _refuse  # a float on the way would lose digits of a `Decimal`
    return lambda data: msgspec.convert(read(data), type, str_keys=True, dec_hook=dec_hook)


def _members_decoder(type: Any) -> Callable[[bytes], Any] | None:
    """For a struct some of whose members stay raw: those are not read at all, so only the others need the hook.

    None where raw values stand deeper, beside floats.
    """
    described = msgspec.inspect.type_info(type)
    if not isinstance(described, msgspec.inspect.StructType) or described.array_like:
        return None
    decoders: dict[str, Callable[[bytes], Any]] = {}
    for field, member in zip(described.fields, msgspec.structs.fields(type), strict=True):
        kinds = _kinds_in(field.type)
        is_raw = msgspec.inspect.RawType in kinds
        if is_raw and not _FLOATS.isdisjoint(kinds):
            return None
        decoders[field.encode_name] = msgspec.json.Decoder(member.type).decode if is_raw else read_slow_json
    members = msgspec.json.Decoder(dict[str, Raw]).decode
    unknown = read_slow_json if described.forbid_unknown_fields else None  # to be refused, or passed over

    def read(data: bytes) -> dict[str, Any]:
        found = [(name, value, decoders.get(name, unknown)) for name, value in members(data).items()]
        return {name: decode(bytes(value)) for name, value, decode in found if decode is not None}

    return read


def _refuse(data: bytes) -> Any:
    raise TooManyFloats("too many numbers beyond 1e288 or below 1e-307: write them as text, or send fewer at once")


def _read_float(text: str) -> float:
    """Refuses what is out of range wherever it stands; msgspec does not in members that a type does not have."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("Number out of range")  # as msgspec says it, which adds the place
    return value


def _kinds_in(node: Any) -> set[type]:
    """The classes of all nodes of a type as `msgspec.inspect` describes it."""
    return {each.__class__ for each in nodes_in(node)}


read_json = JsonReader().decode
read_members = JsonReader(dict[str, Any]).decode
read_own_json = JsonReader(bounded=False).decode
read_slow_json = msgspec.json.Decoder(float_hook=_read_float).decode
"""For short texts in great number, each of which may be a slow number: 0.4 µs for every float."""
