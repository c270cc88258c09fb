"""What clients say of themselves: bounds, kinds, documents."""

from __future__ import annotations

import json

import pytest

from interlock.auth.authorization_server.client_metadata import (
    KnownClient,
    hash_secret,
    is_document_id,
    read_document,
    read_metadata,
)
from interlock.auth.authorization_server.responses import OAuthError
from interlock.wire.errors import LocalError
from support.auth_tokens import jwk_of, signer

URI = "https://app.example.com/done"
ID = "https://app.example.com/client.json"
METHODS = ("none", "client_secret_basic")


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"redirect_uris": []},
        {"redirect_uris": URI},
        {"redirect_uris": [URI] * 11},
        {"redirect_uris": [URI, 1]},
        {"redirect_uris": ["javascript:x"]},
        {"redirect_uris": [URI], "grant_types": ["client_credentials"]},
        {"redirect_uris": [URI], "grant_types": ["authorization_code", "password"]},
        {"redirect_uris": [URI], "grant_types": ["refresh_token"]},
        {"redirect_uris": [URI], "grant_types": "authorization_code"},
        {"redirect_uris": [URI], "grant_types": [1]},
        {"redirect_uris": [URI], "grant_types": ["authorization_code"] * 11},
        {"redirect_uris": [URI], "response_types": ["token"]},
        {"redirect_uris": [URI], "response_types": ["code", "token"]},
        {"redirect_uris": [URI], "token_endpoint_auth_method": "private_key_jwt"},
        {"redirect_uris": [URI], "token_endpoint_auth_method": "client_secret_jwt"},
        {"redirect_uris": [URI], "token_endpoint_auth_method": None},
        {"redirect_uris": [URI], "client_name": ["x"]},
    ],
)
def test_what_cannot_be_registered(members):
    with pytest.raises(OAuthError) as caught:
        read_metadata(members, "c", methods=METHODS)
    assert caught.value.error in ("invalid_redirect_uri", "invalid_client_metadata")


def test_what_is_said_is_bounded_and_the_rest_passed_over():
    found, method = read_metadata(
        {"redirect_uris": [URI], "client_name": "x\x1b[31m" + "y" * 500, "logo_uri": "https://evil.example", "id": 1},
        "c",
        methods=METHODS,
    )
    assert method == "none" and found.public and len(found.name) <= 130 and "\x1b" not in found.name
    assert found.id == "c" and found.grants == ("authorization_code",)


def test_a_secret_is_kept_as_a_hash():
    client = KnownClient(id="c", secret_hash=hash_secret("a-secret-of-some-length"))
    assert client.has_secret("a-secret-of-some-length") and not client.has_secret("") and not client.public
    assert not KnownClient(id="c").has_secret("")
    with pytest.raises(LocalError):
        hash_secret("short")


@pytest.mark.parametrize(
    "id",
    [
        "http://app.example.com/client.json",
        "https://app.example.com",
        "https://app.example.com/",
        "https://app.example.com/a/../b",
        "https://app.example.com/a?x",
        "https://app.example.com/a#x",
        "https://user@app.example.com/a",
        "HTTPS://app.example.com/a",
        "https:///a",
        "https://app.example.com/ä",
        "c",
        "",
    ],
)
def test_what_is_no_url_of_a_document(id):
    assert is_document_id(ID) and not is_document_id(id)


def document(**changes):
    base = {"client_id": ID, "client_name": "App", "redirect_uris": [URI]}
    return json.dumps({name: value for name, value in {**base, **changes}.items() if value is not None}).encode()


def test_a_document_describes_a_client():
    found = read_document(document(), ID)
    assert found.kind == "document" and found.name == "App" and found.public
    keyed = document(token_endpoint_auth_method="private_key_jwt", jwks={"keys": [jwk_of(signer)]})
    assert not read_document(keyed, ID).public


@pytest.mark.parametrize(
    "body",
    [
        document(client_id=ID + "/"),
        document(client_id=None),
        document(client_name=None),
        document(client_name=1),
        document(redirect_uris=None),
        document(redirect_uris=["javascript:x"]),
        document(client_secret="x"),
        document(client_secret_expires_at=0),
        document(token_endpoint_auth_method="client_secret_basic"),
        document(token_endpoint_auth_method="private_key_jwt"),
        document(token_endpoint_auth_method="private_key_jwt", jwks={"keys": []}),
        document(token_endpoint_auth_method="private_key_jwt", jwks={"keys": [{"kty": "oct", "k": "x"}]}),
        document(token_endpoint_auth_method="private_key_jwt", jwks_uri="https://evil.example/keys"),
        b"[]",
        b"<html>",
        b"",
    ],
)
def test_documents_that_are_none(body):
    with pytest.raises(OAuthError) as caught:
        read_document(body, ID)
    assert caught.value.error == "invalid_client"
