"""Proofs and nonces."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from interlock.auth.client.dpop import Prover, nonce_in
from interlock.auth.jose.signer import new_key
from interlock.auth.secrets import Secret
from support.auth_world import Clock


def read(proof):
    head, claims, _ = proof.split(".")
    return [json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in (head, claims)]


@pytest.fixture
def prover():
    return Prover(new_key(), Clock())


def test_a_proof_is_for_one_request(prover):
    head, claims = read(prover.proof("POST", "https://h:8443/mcp?secret=1", Secret("tok")))
    assert head["typ"] == "dpop+jwt" and head["alg"] == "ES256" and "d" not in head["jwk"]
    assert claims["htm"] == "POST" and claims["htu"] == "https://h:8443/mcp" and claims["iat"] == 1_000_000
    assert claims["ath"] == base64.urlsafe_b64encode(hashlib.sha256(b"tok").digest()).decode().rstrip("=")
    assert "nonce" not in claims
    assert read(prover.proof("POST", "https://h/mcp"))[1]["jti"] != claims["jti"]
    assert "ath" not in read(prover.proof("POST", "https://h"))[1]


def test_a_nonce_goes_to_the_one_who_gave_it(prover):
    assert prover.heard("https://h/token", "n1")
    assert not prover.heard("https://h/other", "n1")
    assert read(prover.proof("GET", "https://h/mcp"))[1]["nonce"] == "n1"
    assert "nonce" not in read(prover.proof("GET", "https://other/mcp"))[1]
    assert prover.heard("https://h/token", "n2")
    assert read(prover.proof("GET", "https://h/mcp"))[1]["nonce"] == "n2"
    for number in range(40):
        prover.heard(f"https://h{number}/", "n")
    assert "nonce" not in read(prover.proof("GET", "https://h0/mcp"))[1]


@pytest.mark.parametrize("bad", [None, "", "a b", "a\n", 'a"', "a\\", "ä", "x" * 2000])
def test_what_is_no_nonce_is_ignored(prover, bad):
    assert nonce_in(bad) is None and not prover.heard("https://h/", bad)


def test_a_prover_does_not_show_its_key(prover):
    assert repr(prover) == "Prover(…)"
