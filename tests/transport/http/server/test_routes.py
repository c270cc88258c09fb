"""transport/http/server/routes.py: the same place with and without a slash, mounted or not; and a sign of life."""

import json

import pytest

from interlock.transport.http.server.routes import Place, Places, sign_of_life
from interlock.wire.errors import LocalError


def found(path, root="", *, at="/mcp", health="/health", old=True):
    return Places(at, health=health, old=old).find({"path": path, "root_path": root})


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/mcp", Place.ENDPOINT),
        ("/mcp/", Place.ENDPOINT),
        ("/sse", Place.SSE),
        ("/sse/", Place.SSE),
        ("/messages", Place.MESSAGES),
        ("/messages/", Place.MESSAGES),
        ("/health", Place.HEALTH),
        ("/health/", Place.HEALTH),
        ("/", None),
        ("", None),
        ("/mcp//", None),
        ("//mcp", None),
        ("/MCP", None),
        ("/mcp/health", None),
    ],
)
@pytest.mark.parametrize("root", ["", "/api", "/api/", "/a/b"])
def test_where_a_request_knocks(path, place, root):
    assert found(root.rstrip("/") + path, root) is place
    assert found(path, root) is place, "some servers leave the mount point out of the path"


def test_at_a_mount_point_itself():
    assert found("/api", "/api", at="/") is Place.ENDPOINT
    assert found("/api/", "/api", at="/") is Place.ENDPOINT
    assert found("/api/health", "/api", at="/") is Place.HEALTH
    assert found("/apimcp", "/api") is None


def test_a_scope_without_a_mount_point():
    assert Places("/mcp", health=None, old=False).find({"path": "/mcp"}) is Place.ENDPOINT


def test_what_is_not_wanted_is_not_there():
    assert found("/health", health=None) is None
    assert found("/alive", health="/alive/") is Place.HEALTH
    assert found("/sse", old=False) is found("/messages", old=False) is None


def test_the_endpoint_comes_first():
    assert found("/sse", at="/sse") is Place.ENDPOINT


@pytest.mark.parametrize(("at", "health"), [("mcp", None), ("", None), ("/mcp", "health"), ("/x", "/x"), ("/x", "/x/")])
def test_what_is_no_place_is_said_at_once(at, health):
    with pytest.raises(LocalError):
        Places(at, health=health, old=True)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_sign_of_life_says_nothing_but_that(method):
    lives, stops = sign_of_life(method, False), sign_of_life(method, True)
    assert (lives.status, json.loads(lives.body)) == (200, {"status": "serving"})
    assert (stops.status, json.loads(stops.body)) == (503, {"status": "stopping"})
    assert dict(stops.headers)["retry-after"] == "1"
    assert {dict(each.headers)["cache-control"] for each in (lives, stops)} == {"no-store"}


@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "TRACE"])
def test_it_is_asked_with_get(method):
    refused = sign_of_life(method, False)
    assert (refused.status, dict(refused.headers)["allow"]) == (405, "GET, HEAD")
