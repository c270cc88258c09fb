"""What an owner can say, and what he cannot."""

from __future__ import annotations

import pytest

from interlock.auth.client.providers import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
from interlock.auth.secrets import Secret
from interlock.wire.errors import LocalError


async def login(url):
    return url


@pytest.mark.parametrize(
    "said",
    [
        {"client_secret": "s"}, {"private_key": "k"}, {"login": login}, {"login": "telepathy"},
        {"redirect_uri": "http://example.com/cb"}, {"redirect_uri": "myapp:/cb"}, {"redirect_uri": "http://localhost/#"},
        {"client_metadata_url": "http://h/c.json"}, {"client_metadata_url": "https://h"},
        {"client_metadata_url": "https://h/"}, {"issuer": "as.example"}, {"principal": ""}, {"principal": "a b"},
        {"principal": "a\n"},
    ],
)  # fmt: skip
def test_what_cannot_be_meant(said):
    with pytest.raises(LocalError):
        OAuth(**said)


def test_a_secret_or_a_key_and_not_both():
    for said in ({}, {"client_secret": "s", "private_key": "k"}):
        with pytest.raises(LocalError, match="either"):
            ClientCredentials("c", **said)


def test_no_plan_shows_its_secrets():
    plans = [
        OAuth(client_id="c", client_secret="hunter2"),
        ClientCredentials("c", "hunter2"),
        EnterpriseManaged("c", "hunter2", idp_token_endpoint="https://i/t", idp_client_id="i", id_token="hunter2"),
        WorkloadIdentity("hunter2"),
    ]
    assert "hunter2" not in repr(plans) + str([plan.given for plan in plans])


def test_what_is_supplied_may_change():
    tokens = iter(["one", "two"])
    plan = WorkloadIdentity(lambda: next(tokens))
    assert [plan.assertion(), plan.assertion()] == [Secret("one"), Secret("two")]
    assert OAuth(scope="a b").scope == ("a", "b") == OAuth(scope=["a", "b"]).scope and OAuth().scope is None
