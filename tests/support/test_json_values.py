"""The values: two JSON readers agree with the lists, except where one is known to be lenient."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from support.json_values import ACCEPT, LENIENT_STDLIB, REJECT, in_params


def identify(text: bytes) -> str:
    return repr(text[:40])


@pytest.mark.parametrize("text", ACCEPT, ids=identify)
def test_accepted_value(text: bytes):
    assert b"\n" not in text
    expected = json.loads(text)
    for reader in (json.loads, msgspec.json.decode):
        assert reader(in_params(text))["params"]["x"] == expected


def refuse_constant(name: str) -> Any:
    raise ValueError(name)


@pytest.mark.parametrize("text", REJECT, ids=identify)
def test_rejected_value(text: bytes):
    assert b"\n" not in text
    line = in_params(text)
    with pytest.raises((ValueError, RecursionError)):
        msgspec.json.decode(line)
    if text in LENIENT_STDLIB:
        json.loads(line)
    else:
        with pytest.raises((ValueError, RecursionError)):
            json.loads(line, parse_constant=refuse_constant)


def test_values_are_unique():
    assert len(set(ACCEPT)) == len(ACCEPT) and len(set(REJECT)) == len(REJECT)
    assert not set(ACCEPT) & set(REJECT)
