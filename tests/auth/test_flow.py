"""Steps: what they show, and how a flow is driven."""

from __future__ import annotations

import pytest

from interlock.auth.flow import Ask, Flow, Said, Save, Visit
from interlock.wire.errors import RemoteError


def flow() -> Flow[int]:
    said = yield Ask(url="https://a.example/token", method="POST", form={"code": "c0de"})
    return said.status


def test_a_flow_is_driven_by_hand():
    running = flow()
    asked = next(running)
    assert asked.form == {"code": "c0de"}
    with pytest.raises(StopIteration) as end:
        running.send(Said(status=200))
    assert end.value.value == 200


@pytest.mark.parametrize(
    "step",
    [
        Ask(url="https://a.example/x?code=hidden", headers={"Authorization": "hidden"}, form={"code": "hidden"}),
        Said(status=200, headers={"x": "hidden"}, body=b"hidden"),
        Visit(url="https://a.example/x?state=hidden", state="hidden"),
        Save("key", b"hidden"),
    ],
)
def test_no_step_shows_what_it_carries(step):
    assert "hidden" not in repr(step) + str(step)


def test_a_json_object_is_read_and_nothing_else():
    assert Said(status=200, body=b'{"a": 1}').members("x") == {"a": 1}
    assert Said(status=200, headers={"content-type": "Application/JSON; charset=utf-8"}).media == "application/json"
    for body in (b"", b"[]", b"<html>", b"\xff", b"[" * 100_000):
        with pytest.raises(RemoteError, match="no JSON object"):
            Said(status=200, body=body).members("x")
