"""server/tools/encoding.py: JSON of what authors return."""

import collections
import dataclasses
import datetime
import json
import types
import uuid
from pathlib import Path, PurePosixPath

import pytest

from interlock.server.content import Image
from interlock.server.tools.encoding import encode_data
from support.duck_models import Model


@dataclasses.dataclass
class Inner:
    when: datetime.date
    models: list[Model]


class Table:
    """As libraries make them: going through it gives something else than what is in it."""

    def __len__(self):
        return 1

    def __iter__(self):
        return iter(["column"])

    def __contains__(self, item):
        return False


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Model(1), {"a": 1}),
        ([Model(1)], [{"a": 1}]),
        (Inner(datetime.date(2026, 1, 2), [Model(3)]), {"when": "2026-01-02", "models": [{"a": 3}]}),
        (PurePosixPath("/a/b"), "/a/b"),
        ({"path": Path("x")}, {"path": "x"}),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({1}, [1]),
        (collections.deque([1, Path("x")]), [1, "x"]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ((n * n for n in range(3)), [0, 1, 4]),
        (types.MappingProxyType({"a": {1: Path("x")}}), {"a": {"1": "x"}}),
    ],
)
def test_values_become_json(value, plain):
    assert json.loads(encode_data(value)) == plain


def test_a_helper_inside_of_data_is_its_block():
    assert json.loads(encode_data({"a": Image(b"\x89PNG\r\n\x1a\n")}))["a"]["type"] == "image"


@pytest.mark.parametrize("value", [object(), {"a": object()}, 1j, iter([1]), Table()])
def test_what_is_no_json_is_told(value):
    with pytest.raises((TypeError, NotImplementedError), match=r"JSON|not supported|unsupported"):
        encode_data(value)
