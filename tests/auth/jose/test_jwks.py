"""Keys that are looked up: rotation, no flood of questions, and the end of patience."""

from __future__ import annotations

import json

import pytest

from interlock.auth.flow import Said
from interlock.auth.jose.jwks import KeySource
from interlock.wire.errors import AuthorizationFailed
from support.auth_tokens import ISSUER, jwk_of, prover, signer

URL = ISSUER + "/keys"


class Published:
    """An issuer that publishes keys, and the one who asks it."""

    def __init__(self, url: str | None = URL) -> None:
        self.now, self.asked, self.keys, self.status = 0.0, [], [jwk_of(signer)], 200
        self.source = KeySource(ISSUER, ["ES256"], lambda: self.now, url=url)
        self.metadata = {"issuer": ISSUER, "jwks_uri": URL}

    def look(self, id):
        flow, said = self.source.look(id), None
        try:
            while True:
                ask = flow.send(said)
                self.asked.append((ask.url, ask.policy))
                members = {"keys": self.keys} if ask.url == URL else self.metadata
                said = Said(status=self.status, body=json.dumps(members).encode())
        except StopIteration as end:
            return [key.id for key in end.value]


def test_given_keys_are_never_looked_up():
    source = KeySource(ISSUER, ["ES256"], lambda: 0.0, given=[jwk_of(signer)])
    assert [key.id for key in source.held("whatever") or ()] == ["k1"]


def test_keys_are_found_by_the_metadata_of_the_issuer():
    world = Published(None)
    assert world.look("k1") == ["k1"]
    assert world.asked == [(ISSUER + "/.well-known/oauth-authorization-server", "typed"), (URL, "named")]
    world.metadata = {"issuer": ISSUER}
    world.now = 10_000
    with pytest.raises(AuthorizationFailed):
        world.look("k1")


def test_an_unknown_key_makes_us_look_but_not_all_the_time():
    world = Published()
    assert world.look("k1") == ["k1"] and world.look("k1") == ["k1"] and len(world.asked) == 1
    for _ in range(50):
        world.look("forged")
    assert len(world.asked) == 1  # within ten seconds of the last look
    world.now, world.keys = 11, [jwk_of(signer), jwk_of(prover, "k2")]
    assert world.look("k2") == ["k1", "k2"] and len(world.asked) == 2


def test_keys_that_are_withdrawn_are_gone_after_a_while():
    world = Published()
    world.look("k1")
    world.now, world.keys = 601, [jwk_of(prover, "k2")]
    assert world.look("k1") == ["k2"]


def test_an_issuer_that_is_down_does_not_lock_everybody_out_at_once():
    world = Published()
    world.look("k1")
    world.now, world.status = 700, 500
    assert world.look("k1") == ["k1"]
    world.now = 3700
    with pytest.raises(AuthorizationFailed):
        world.look("k1")
    with pytest.raises(AuthorizationFailed):
        world.look("k1")  # and again, without a question: too soon
    assert world.source.held("k1") == ()


@pytest.mark.parametrize("keys", [[], [{"kty": "oct", "k": "x"}]])
def test_a_set_without_keys_is_none(keys):
    world = Published()
    world.keys = keys
    with pytest.raises(AuthorizationFailed):
        world.look("k1")
