"""A secret does not show itself."""

from __future__ import annotations

import copy
import pickle

import msgspec
import pytest

from interlock.auth.secrets import Hidden, Secret


class Holder(msgspec.Struct):
    secret: Secret


def test_nothing_shows_it():
    secret = Secret("hunter2")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r}", repr([secret])]
    assert "hunter2" not in "".join([*shown, repr(Holder(secret)), "%s" % secret])  # noqa: UP031
    assert secret.reveal() == "hunter2"


def test_a_form_shows_its_names():
    form = Hidden(code="hunter2", state="x")
    assert repr(form) == str(form) == "Hidden(code, state)" and form == {"code": "hunter2", "state": "x"}


def test_only_secrets_are_equal_to_secrets():
    assert Secret("a") == Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a")}) == 1
    assert Secret("a") and not Secret("")


@pytest.mark.parametrize("leave", [pickle.dumps, copy.copy, copy.deepcopy, msgspec.json.encode])
def test_it_does_not_leave(leave):
    with pytest.raises(TypeError):
        leave(Secret("hunter2"))
