"""Documents and answers that a hostile server, or a broken one, gives to a client that logs in: each member of each of
them with values that nobody expects, and whole bodies that are no document.

Whatever it is, the flow ends with a token or with an error of ours, asks few people, sends a browser only where a
password may go, and keeps nothing that did not come whole.
"""

from __future__ import annotations

import json
import math

import pytest

from interlock.auth.client.providers import ClientCredentials
from interlock.auth.client.token_record import read_standing
from interlock.auth.flow import Said, Visit
from interlock.auth.secrets import Secret
from interlock.auth.urls import browser_url
from interlock.auth.www_authenticate import Demand, demand_in
from interlock.wire.errors import AuthorizationFailed, InterlockError, LoginRequired
from support.auth_world import ISSUER, SERVER, Issuer, World, oauth, said

RECORD = f"server default {SERVER}"
MOST_ASKED = 8  # two places for the server's metadata, three for the issuer's, a registration, two for a token
DEEP = "[" * 5000 + "]" * 5000
VALUES = [
    *("null", "true", "false", "0", "-1", "0.5", "1e308", "1e999", "9" * 400, "-" + "9" * 30, "NaN", "Infinity"),
    *('""', '" "', '"\\u0000"', '"\\r\\nX: y"', '"\\ud800"', '"\\u202e"', '"ä"', json.dumps("x" * 70_000), DEEP),
    *("[]", "{}", "[null]", "[[]]", '[""]', '{"a": 1}', '["S256", 5]', '["none"]', '["plain"]', '"S256"', '"none"'),
    *('"javascript:alert(1)"', '"file:///etc/passwd"', '"data:text/html,x"', '"//evil.example/"', '"https://"'),
    *('"https://evil.example/"', '"https://user:pw@evil.example/"', '"http://evil.example/authorize"', '"https://["'),
    *('"https://as.example.com@evil.example/"', '"https://as.example.com\\\\.evil.example/"', '"https://h:99999/"'),
    *(
        '["https://evil.example"]',
        '["http://127.0.0.1:1"]',
        '["https://as.example.com/"]',
        '["https://AS.example.com"]',
    ),
]
BODIES = {
    "nothing": b"",
    "half": b'{"issuer": "https://as.exam',
    "a list": b"[]",
    "null": b"null",
    "a number": b"1",
    "no text": b"\xff\xfe\x00",
    "a mark first": b"\xef\xbb\xbf{}",
    "deep lists": b'{"issuer":' + b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "a page": b"<!doctype html><title>{}</title>",
    "empty": b"{}",
    "two": b"{}{}",
    "not a number": b'{"expires_in": NaN, "issuer": Infinity}',
    "a half letter": b'{"issuer": "\xc3"}',
    "packed": b"\x1f\x8b\x08\x00{",
    "much space": b" " * 200_000 + b"{",
}
PLACES = {
    "resource": "https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
    "server": f"{ISSUER}/.well-known/oauth-authorization-server",
    "registration": f"{ISSUER}/register",
    "token": f"{ISSUER}/token",
}
MEMBERS = {
    "resource": ["resource", "authorization_servers", "scopes_supported", "dpop_bound_access_tokens_required"],
    "server": [
        *("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint", "scopes_supported"),
        *("code_challenge_methods_supported", "token_endpoint_auth_methods_supported", "grant_types_supported"),
        *("dpop_signing_alg_values_supported", "client_id_metadata_document_supported", "jwks_uri"),
        "authorization_response_iss_parameter_supported",
    ],
    "registration": [
        *("client_id", "client_secret", "client_secret_expires_at", "redirect_uris", "token_endpoint_auth_method"),
    ],
    "token": ["access_token", "token_type", "expires_in", "refresh_token", "scope"],
}


class Away(World):
    """A browser that is sent to another place than the issuer's does not come back."""

    def do(self, step):
        if isinstance(step, Visit):
            assert browser_url(step.url) and "\n" not in step.url
            if not step.url.startswith(f"{ISSUER}/authorize"):
                self.visits.append(step.url)
                raise LoginRequired("nobody came back")
        return super().do(step)


def answered(world, document, change):
    """Let the answer at this place be changed."""
    route = world.routes[PLACES[document]]
    world.routes[PLACES[document]] = lambda ask: change(route(ask))


def attempt(world, plan):
    """One login; what came of it is whole, or there is none."""
    try:
        seeker = world.logged_in(plan)
    except InterlockError as error:
        standing = read_standing(world.records.load(RECORD))
        assert standing is None and len(str(error)) < 1000
        seeker = None
    else:
        token = read_standing(world.records.load(RECORD)).token
        assert token.access and all("!" <= char <= "~" for char in token.access.reveal())
        assert token.expires is None or math.isfinite(token.expires)
        assert world.run(seeker.current()) is not None
    assert len(world.asks) <= MOST_ASKED and len(world.visits) <= 1
    return seeker


@pytest.mark.requirement("SEC-016", "SEC-014")
@pytest.mark.parametrize("document", MEMBERS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: value[:40])
def test_no_value_of_any_member_does_harm(document, value):
    for member in MEMBERS[document]:
        for plan in (oauth(), ClientCredentials("svc", "s3cret-of-ours")):
            if isinstance(plan, ClientCredentials) and document == "registration":
                continue

            def changed(answer, member=member):
                members = json.loads(answer.body)
                members.pop(member, None)
                rest = json.dumps(members)[1:]
                text = f'{{"{member}": {value}{", " if members else ""}{rest}'
                return Said(status=answer.status, headers=answer.headers, body=text.encode())

            world = Away()
            answered(world, document, changed)
            attempt(world, plan)
            codes = [ask.url for ask in world.asks if ask.form is not None and "code" in ask.form]
            assert codes in ([], [f"{ISSUER}/token"]) or member == "token_endpoint"


@pytest.mark.parametrize("document", PLACES)
@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_is_no_document_is_none(document, body):
    for status in (200, 201, 204, 302, 400, 401, 418, 429, 500):
        world = Away()
        answered(world, document, lambda answer, status=status: Said(status=status, body=BODIES[body]))
        assert attempt(world, oauth()) is None or (document == "resource" and status not in (200, 429, 500))


TOKEN = {"access_token": "new-one", "token_type": "Bearer"}


@pytest.mark.parametrize(
    "answer",
    [
        said({}), said([]), said({"access_token": "x"}), said({**TOKEN, "token_type": "mac"}),
        said({**TOKEN, "token_type": "DPoP"}), said({**TOKEN, "access_token": "a b"}), Said(status=200),
        Said(status=200, body=b"<html>"), Said(status=302, headers={"location": "https://evil.example/"}),
        said({"error": "invalid_grant"}, 500), said({"error": "invalid_grant"}, 429), said({"error": "slow_down"}, 400),
        said({"error": "use_dpop_nonce"}, 400, dpop_nonce="n"), said({}, 400), Said(status=400, body=b"{" * 9999),
    ],
)  # fmt: skip
def test_a_refresh_that_is_answered_oddly_costs_nothing(answer):
    """No login is begun, and what was there is there when the server is itself again."""
    world = World()
    seeker = world.logged_in()
    world.clock.now += 3600
    route = world.routes[PLACES["token"]]
    world.routes[PLACES["token"]] = lambda ask: answer
    for _ in range(3):
        asked = len(world.asks)
        with pytest.raises(InterlockError):
            world.run(seeker.current())
        assert len(world.asks) == asked + 1 and len(world.visits) == 1
    world.routes[PLACES["token"]] = route
    assert world.run(seeker.current()).by == "refreshed"


@pytest.mark.requirement("SEC-016")
@pytest.mark.parametrize(
    "header",
    [
        'Bearer resource_metadata="javascript:alert(1)"', 'Bearer resource_metadata="file:///etc/passwd"',
        'Bearer resource_metadata=""', 'Bearer resource_metadata="//evil.example/x"', 'Bearer resource_metadata="/x"',
        'Bearer resource_metadata="https://user:pw@evil.example/x"', 'Bearer resource_metadata="https://h/#x"',
        'Bearer resource_metadata="https://h/\\"x"', 'Bearer resource_metadata="https://h/ä"',
        'Bearer resource_metadata="https://[::1"', 'Bearer resource_metadata="https://h:0x50/"',
        f'Bearer resource_metadata="https://h/{"x" * 9000}"', 'Bearer resource_metadata="https://h\\\\@evil.example/"',
    ],
)  # fmt: skip
def test_a_challenge_that_points_nowhere_ends_the_search(header):
    world = World()
    with pytest.raises(AuthorizationFailed):
        world.run(world.seeker().renewed(demand_in(header), None))
    assert not world.asks and not world.visits


@pytest.mark.parametrize(
    "scopes",
    [
        " ".join(f"s{number}" for number in range(10_000)), "x" * 10_000, 'a"b c\\d é \x00', "a " * 5000,
        " ".join(["y" * 300, "ok"]), "\u202e\u2066 a",
    ],
)  # fmt: skip
def test_scopes_of_a_server_stay_within_bounds(scopes):
    world = World()
    world.run(world.seeker().renewed(demand_in(f'Bearer scope="{scopes}"'), None))
    asked = world.visited().get("scope", "").split()
    assert len(asked) <= 100 and all(len(scope) <= 256 and scope.isascii() and scope.isprintable() for scope in asked)


TWO = "https://two.example.com"


@pytest.mark.requirement("AUTH-DISC-010", "AUTH-024", "AUTH-DISC-003")
@pytest.mark.parametrize("stage", ["metadata", "answer", "token", "registration"])
def test_an_issuer_in_the_place_of_another_gets_nothing(stage):
    """The one who was asked is `ISSUER`. Whichever answer the other gives, nothing of it is kept; a code goes
    to the other only where the metadata of `ISSUER` itself name its token endpoint, and it can do nothing with it."""
    one, two = Issuer(), Issuer(TWO)
    world = World(one, two)
    match stage:
        case "metadata":
            world.routes[PLACES["server"]] = lambda ask: said(two.metadata())
        case "answer":
            one.answer = lambda told: {**told, "iss": TWO}
        case "token":
            one.more["token_endpoint"] = f"{TWO}/token"
        case _:
            one.more["registration_endpoint"] = f"{TWO}/register"
    if stage == "registration":  # the other one's client is no client here: it is used here alone, and forgotten
        world.logged_in()
        assert read_standing(world.records.load(RECORD)).issuer == ISSUER and not two.requests
        return
    with pytest.raises(AuthorizationFailed):
        world.logged_in()
    assert not one.requests and world.records.load(RECORD) is None
    assert [request.get("code") for request in two.requests] == (["code-1-of-" + ISSUER] if stage == "token" else [])


@pytest.mark.requirement("AUTH-REG-017", "AUTH-REG-018", "AUTH-DISC-002")
def test_a_server_that_changes_its_issuer_each_time_gets_a_login_each_time_and_no_more():
    issuers = [Issuer(f"https://as{number}.example.com") for number in range(4)]
    world = World(*issuers)
    seeker = world.logged_in()
    for number, issuer in enumerate(issuers[1:], 2):
        world.resource["authorization_servers"] = [issuer.issuer]
        used = Secret(world.run(seeker.current()).standing.token.access.reveal())
        assert world.run(seeker.renewed(Demand(), used)).standing.issuer == issuer.issuer
        assert len(world.visits) == number and len(issuer.clients) == 1
    for issuer in issuers:
        assert [each["grant_type"] for each in issuer.requests] == ["authorization_code"]
        assert issuer.issuer in issuer.requests[0]["code"], "each one sees its own code alone"
