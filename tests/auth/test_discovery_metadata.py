"""Documents of discovery, good and bad."""

from __future__ import annotations

import pytest

from interlock.auth.discovery import is_document, read_resource_metadata, read_server_metadata
from interlock.auth.flow import Said
from interlock.wire.errors import AuthorizationFailed
from support.auth_world import ISSUER, SERVER, Issuer, said

GOOD = {"resource": SERVER, "authorization_servers": [ISSUER]}


def test_a_page_is_no_document():
    assert is_document(said({}))
    assert not is_document(said({}, 404))
    assert not is_document(Said(status=200, body=b"<html>"))


def test_the_metadata_of_this_server_are_taken_as_they_stand():
    found = read_resource_metadata(
        said({**GOOD, "scopes_supported": ["a", "b", "a", 'x"'], "other": 1}), SERVER, at_root=False
    )
    assert (found.resource, found.authorization_servers, found.scopes_supported) == (SERVER, (ISSUER,), ("a", "b"))


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"resource": SERVER},
        {**GOOD, "authorization_servers": []},
        {**GOOD, "authorization_servers": "x"},
        {**GOOD, "authorization_servers": [1]},
        {**GOOD, "resource": "https://evil.example.com/mcp"},
        {**GOOD, "resource": "https://mcp.example.com.evil/mcp"},
        {**GOOD, "resource": None},
        {**GOOD, "scopes_supported": "a b"},
        [],
    ],
)
def test_other_metadata_are_not_used(bad):
    with pytest.raises(AuthorizationFailed):
        read_resource_metadata(said(bad), SERVER, at_root=True)


def test_the_whole_origin_is_a_resource_at_its_root_alone():
    origin = said({**GOOD, "resource": "https://mcp.example.com"})
    assert read_resource_metadata(origin, SERVER, at_root=True).resource == "https://mcp.example.com"
    with pytest.raises(AuthorizationFailed, match=r"another resource .* \(https://mcp\.example\.com\)"):
        read_resource_metadata(origin, SERVER, at_root=False)


@pytest.mark.parametrize(
    "issuer",
    [ISSUER + "/", ISSUER.upper(), "https://as.example.com:443", "https://evil.example.com", "", None, 1, [ISSUER]],
)
def test_an_issuer_is_compared_string_for_string(issuer):
    with pytest.raises(AuthorizationFailed):
        read_server_metadata(said({**Issuer().metadata(), "issuer": issuer}), (ISSUER,))


@pytest.mark.parametrize("endpoint", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///x", "https://u:p@h/", "/token", "", "https://h/#x"])
def test_no_endpoint_is_taken_that_is_no_url(endpoint, url):
    with pytest.raises(AuthorizationFailed):
        read_server_metadata(said({**Issuer().metadata(), endpoint: url}), (ISSUER,))


def test_without_a_token_endpoint_there_are_no_tokens():
    found = read_server_metadata(said(Issuer(token_endpoint=None).metadata()), (ISSUER,))
    with pytest.raises(AuthorizationFailed, match="no token endpoint"):
        found.endpoint()
