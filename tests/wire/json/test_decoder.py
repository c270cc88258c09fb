"""wire/json/decoder.py: made late, and then as good as any."""

import msgspec
import pytest

from interlock.wire.json.decoder import decoder


class Point(msgspec.Struct):
    x: int
    y: int = 0


def test_a_decoder_is_made_with_its_first_use_and_only_then(monkeypatch):
    made = []
    real = msgspec.json.Decoder
    monkeypatch.setattr(msgspec.json, "Decoder", lambda kind, **how: made.append(kind) or real(kind, **how))
    late = decoder(Point)
    assert made == []
    assert late.decode(b'{"x":1}') == Point(1)
    assert late.decode(b'{"x":2,"y":3}') == Point(2, 3)
    assert made == [Point]


def test_what_does_not_fit_is_refused_each_time():
    late = decoder(Point | list[int])
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError, match="Expected `int`, got `str`"):
            late.decode(b'{"x":"1"}')
    assert late.decode(b"[1]") == [1]


def test_a_type_that_cannot_be_read_shows_with_the_first_use():
    late = decoder(list[int] | list[str])
    with pytest.raises(TypeError):
        late.decode(b"[]")


def test_what_a_decoder_has_not_it_has_not():
    with pytest.raises(AttributeError):
        decoder(Point).nonsense
