"""Cases: what they object to in an answer."""

from __future__ import annotations

from typing import Any

import pytest

from support.cases import OK, PARSE, Case


def error(code: int, **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "error": {"code": code, "message": ""}, **members}


RESULT = {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize(
    ("case", "answer", "objection"),
    [
        (Case("", b"", (PARSE,)), error(PARSE), None),
        (Case("", b"", (PARSE,)), error(-32600), "expected"),
        (Case("", b"", (PARSE,)), error(PARSE, id=1), "out of nowhere"),
        (Case("", b"", (PARSE,)), error(PARSE, id=None), "out of nowhere"),
        (Case("", b"", (PARSE,)), None, "no answer"),
        (Case("", b"", (PARSE,)), [], "expected an object"),
        (Case("", b"", (PARSE,)), {"jsonrpc": "2.0"}, "expected"),
        (Case("", b"", (PARSE,), 1, id_recoverable=True), error(PARSE), None),
        (Case("", b"", (PARSE,), 1, id_recoverable=True), error(PARSE, id=1), None),
        (Case("", b"", (PARSE,), 1, id_recoverable=True), error(PARSE, id=2), "expected id"),
        (Case("", b"", (-32600, -32602), 1), error(-32602, id=1), None),
        (Case("", b"", (-32600,), 1), error(-32600), "not echoed"),
        (Case("", b"", (-32600,), 1), error(-32600, id="1"), "expected id"),
        (Case("", b"", (-32600,), 1), error(-32600, id=True), "expected id"),
        (Case("", b"", (None,)), None, None),
        (Case("", b"", (None,)), error(-32600), "expected"),
        (Case("", b"", (None, -32600)), error(-32600), None),
        (Case("", b"", (OK,), 1), RESULT, None),
        (Case("", b"", (OK,), 1), error(-32600, id=1), "expected"),
        (Case("", b"", (OK,), 1, in_array=True), [RESULT], None),
        (Case("", b"", (OK,), 1, in_array=True), RESULT, "array of one"),
    ],
)
def test_objections(case: Case, answer: Any, objection: str | None):
    found = case.objection(answer)
    assert found is None if objection is None else objection in (found or "")
