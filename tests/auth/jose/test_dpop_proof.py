"""Proofs of possession: each check of RFC 9449 §4.3 broken once."""

from __future__ import annotations

import pytest

from interlock.auth.jose.dpop_proof import BadProof, Nonces, check_proof
from interlock.auth.jose.signer import thumbprint
from support.auth_tokens import NOW, RESOURCE, proof_of, prover, signer

TOKEN = "a-token"


def check(proof, **more):
    return check_proof(proof, "POST", RESOURCE, NOW, access=TOKEN, **more)


def test_a_good_proof_names_its_key():
    found = check(proof_of(TOKEN))
    assert found.key == thumbprint(prover.public_jwk()) and found.until == NOW + 300
    assert found.once == check(proof_of(TOKEN)).once != check(proof_of(TOKEN, jti="j2")).once
    check(proof_of(TOKEN, htu="HTTPS://MCP.example.com:443/mcp?x=1"))
    check(proof_of(TOKEN, iat=NOW - 299))


@pytest.mark.parametrize(
    "proof",
    [
        proof_of(TOKEN, header={"typ": "jwt"}),
        proof_of(TOKEN, header={"typ": None}),
        proof_of(TOKEN, header={"jwk": signer.public_jwk()}),
        proof_of(TOKEN, header={"jwk": None}),
        proof_of(TOKEN, header={"jwk": {**prover.public_jwk(), "d": "x"}}),
        proof_of(TOKEN, header={"jwk": {"kty": "oct", "k": "x"}}),
        proof_of(TOKEN, header={"kid": "k1"}),
        proof_of(TOKEN, header={"crit": ["x"]}),
        proof_of(TOKEN, jti=None),
        proof_of(TOKEN, jti=""),
        proof_of(TOKEN, jti="x" * 257),
        proof_of(TOKEN, jti=1),
        proof_of(TOKEN, htm="GET"),
        proof_of(TOKEN, htm="post"),
        proof_of(TOKEN, htm=None),
        proof_of(TOKEN, htu="https://mcp.example.com/other"),
        proof_of(TOKEN, htu="https://evil.example/mcp"),
        proof_of(TOKEN, htu="http://mcp.example.com/mcp"),
        proof_of(TOKEN, htu=RESOURCE + "/"),
        proof_of(TOKEN, htu=None),
        proof_of(TOKEN, htu=["x"]),
        proof_of(TOKEN, iat=None),
        proof_of(TOKEN, iat=NOW - 301),
        proof_of(TOKEN, iat=NOW + 301),
        proof_of(TOKEN, iat=str(NOW)),
        proof_of(TOKEN, iat=True),
        proof_of(TOKEN, iat=10**18),
        proof_of(TOKEN).replace(".", "..", 1),
        proof_of("another token"),
        proof_of(None),
        proof_of(TOKEN)[:-4] + "AAAA",
        "",
        "a.b.c",
    ],
)
def test_what_is_wrong_with_a_proof(proof):
    with pytest.raises(BadProof) as caught:
        check(proof)
    assert not caught.value.nonce


def test_nonces_are_ours_and_young():
    now = [NOW]
    nonces = Nonces(lambda: now[0], seconds=60)
    nonce = nonces.new()
    assert nonces.good(nonce) and check(proof_of(TOKEN, nonce=nonce), nonces=nonces)
    for other in (None, 1, "", "x", nonce[:-2] + "AA", Nonces(lambda: NOW).new(), "x" * 200):
        assert not nonces.good(other)
    with pytest.raises(BadProof) as caught:
        check(proof_of(TOKEN), nonces=nonces)
    assert caught.value.nonce
    now[0] += 61
    assert not nonces.good(nonce)
