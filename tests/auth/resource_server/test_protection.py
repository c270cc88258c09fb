"""What an owner may say, and what is told of it to the world."""

from __future__ import annotations

import pytest

from interlock.auth.resource_server.protection import (
    Introspection,
    Protection,
    challenge,
    metadata_document,
    metadata_paths,
    widened,
)
from interlock.auth.www_authenticate import challenges_in
from interlock.wire.errors import LocalError
from support.auth_tokens import ISSUER, RESOURCE, jwk_of, protection, signer


@pytest.mark.parametrize(
    "wrong",
    [
        {"resource": "http://mcp.example.com/mcp"},
        {"resource": "mcp.example.com"},
        {"resource": RESOURCE + "#x"},
        {"resource": RESOURCE + "?x=1"},
        {"issuer": "ftp://as.example.com"},
        {"keys_url": "http://as.example.com/keys"},
        {"algorithms": ()},
        {"algorithms": ("HS256",)},
        {"algorithms": ("ES256", "none")},
        {"leeway": -1},
        {"leeway": 301},
        {"dpop": "maybe"},
        {"scopes": ("a b",)},
        {"scopes": ("",)},
        {"scopes_supported": ('"',)},
        {"scopes": ("offline_access",)},
        {"scopes": "read"},
        {"scopes_supported": "read"},
        {"audiences": "api://notes"},
        {"algorithms": "ES256"},
        {"allowed_hosts": "as.example.com"},
        {"implies": {"admin": "read"}},
        {"keys": ()},
        {"keys": ({"kty": "oct", "k": "x"},)},
        {"keys": {"keys": [jwk_of(signer)]}},
        {"algorithms": ("RS256",)},
    ],
)
def test_what_makes_no_sense_is_said_at_once(wrong):
    with pytest.raises(LocalError):
        protection(**wrong)


@pytest.mark.parametrize("seconds", [-1, 301])
def test_the_word_of_an_issuer_lasts_for_minutes_at_most(seconds):
    with pytest.raises(LocalError):
        Introspection(url=ISSUER + "/i", client_id="c", client_secret="s", seconds=seconds)


def test_on_this_machine_plain_http_will_do():
    Protection(resource="http://127.0.0.1:8000/mcp", issuer="http://localhost:9000")


def test_a_token_for_others_too_is_none_for_us():
    rules = protection(audiences=("api://notes",))
    assert rules.takes((RESOURCE,)) and rules.takes(("HTTPS://MCP.EXAMPLE.COM:443/mcp",))
    assert rules.takes(("api://notes",)) and rules.takes((RESOURCE, "api://notes"))
    assert not rules.takes(()) and not rules.takes((RESOURCE, "api://other")) and not rules.takes(("api://notes/",))


def test_scopes_may_stand_for_others():
    assert widened(["admin"], {"admin": ("write",), "write": ("read", "admin")}) == {"admin", "write", "read"}
    assert widened(["read"], {"admin": ("read",)}) == {"read"}


def test_the_metadata():
    rules = protection(scopes=("read",), scopes_supported=("write", "read"), dpop="required")
    found = metadata_document(rules, "notes")
    assert found["resource"] == RESOURCE and found["authorization_servers"] == [ISSUER]
    assert found["scopes_supported"] == ["read", "write"] and found["bearer_methods_supported"] == ["header"]
    assert found["dpop_bound_access_tokens_required"] is True and found["resource_name"] == "notes"
    assert "scopes_supported" not in metadata_document(protection())
    paths = ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource")
    assert metadata_paths(rules) == paths
    assert metadata_paths(protection(resource="https://mcp.example.com")) == paths[1:]


def test_the_challenge_says_where_to_go_on():
    told = challenge(protection(scopes=("read",)), "insufficient_scope", "why", scopes=("write", "read"))
    assert challenges_in(told) == [
        (
            "bearer",
            {
                "error": "insufficient_scope",
                "error_description": "why",
                "scope": "read write",
                "resource_metadata": "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            },
        )
    ]
    assert set(challenges_in(challenge(protection()))[0][1]) == {"resource_metadata"}
    [(scheme, params)] = challenges_in(challenge(protection(dpop="required")))
    assert scheme == "dpop" and "ES256" in params["algs"].split() and "HS256" not in params["algs"]


def test_the_secret_of_introspection_is_not_shown():
    how = Introspection(url=ISSUER + "/introspect", client_id="rs", client_secret="hush")
    assert "hush" not in repr(how) and "hush" not in repr(protection(introspection=how))
