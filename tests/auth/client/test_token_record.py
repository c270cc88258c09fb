"""Records: what is written down, and what is not."""

from __future__ import annotations

import pytest

from interlock.auth.client.token_record import Registered, Standing, Token, kept, read_registered, read_standing
from interlock.auth.secrets import Secret

TOKEN = Token(access=Secret("acc"), refresh=Secret("ref"), expires=10.0, asked=("a",), granted=None)


def standing(how="registered"):
    client = Registered(id="c", how=how, secret=Secret("sec"), key=Secret("pem"), method="client_secret_basic")
    return Standing(issuer="i", resource="r", token_endpoint="t", client=client, token=TOKEN, dpop_key=Secret("k"))


def test_a_record_comes_back_as_it_was_and_shows_nothing():
    assert read_standing(kept(standing())) == standing()
    assert read_registered(kept(Registered(id="x", secret=Secret("s")))) == Registered(id="x", secret=Secret("s"))
    shown = repr(standing())
    assert not any(f"'{text}'" in shown for text in ("acc", "ref", "sec", "pem", "k"))


def test_what_the_owner_gives_is_not_written_down():
    found = read_standing(kept(standing("given")))
    assert found is not None and found.client is not None
    assert found.client.secret is None and found.client.key is None and found.client.method == "client_secret_basic"


@pytest.mark.parametrize("data", [None, b"", b"{}", b"[]", b"\xff", b'{"issuer": 1}'])
def test_what_cannot_be_read_is_no_record(data):
    assert read_standing(data) is None and read_registered(data) is None


def test_a_token_ends_at_a_time_that_does_not_move():
    assert TOKEN.fresh(9.9) and not TOKEN.fresh(10.0)
    assert Token(access=Secret("a")).fresh(1e12)
