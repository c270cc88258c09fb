"""Resources as clients of every revision find, read and watch them, over every carrier."""

import base64
import re
import sys

import pytest

from interlock import Annotations, Client, Server
from interlock.wire.errors import LocalError, Refused
from support.http_talk import PLACES, speaking
from support.modern_peer import UPDATED, connected, hears, listen, settled
from support.servers import library
from support.talking import settled as client_settled
from support.talking import talking
from support.wire_peer import ALL, CARRIERS, HANDSHAKE, MODERN

everywhere = pytest.mark.parametrize(("carrier", "revision"), PLACES)
handshake = pytest.mark.parametrize("revision", HANDSHAKE)
carriers = pytest.mark.parametrize("carrier", CARRIERS)

NOT_FOUND = {revision: -32602 if revision in MODERN else -32002 for revision in ALL}
CHANGED = "notifications/resources/list_changed"
# RFC 3986, written anew: a scheme, then what each part may hold.
URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*(#[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?"
)


async def all_of(peer, method, member):
    """Every item of a list, page by page."""
    found, cursor = [], {}
    while cursor is not None:
        page = await peer.result(method, cursor)
        found += page[member]
        cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    return found


async def resources_of(peer):
    return {each["uri"]: each for each in await all_of(peer, "resources/list", "resources")}


async def templates_of(peer):
    found = await all_of(peer, "resources/templates/list", "resourceTemplates")
    return {each["uriTemplate"]: each for each in found}


async def read(peer, uri):
    return (await peer.result("resources/read", {"uri": uri}))["contents"]


async def call(peer, tool, **arguments):
    return await peer.result("tools/call", {"name": tool, "arguments": arguments})


# --- what is there ---


@everywhere
@pytest.mark.requirement("RES-01", "RES-001", "RES-002")
async def test_who_declares_resources_lists_them(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        if revision in MODERN:
            declared = (await peer.result("server/discover", {}))["capabilities"]
        else:
            [declared] = [
                frame["result"]["capabilities"]
                for frame in peer.transcript.frames("server")
                if "capabilities" in frame.get("result", {})
            ]
        assert declared["resources"] == {"subscribe": True, "listChanged": True}
        assert {"library://plain", "library://cover", "file:///folder/"} <= set(await resources_of(peer))


@everywhere
@pytest.mark.requirement("RES-01", "RES-001")
async def test_who_has_none_declares_none_and_answers_nothing(carrier, revision):
    async with speaking(carrier, revision, server="lean" if revision in MODERN else "handshake_only") as peer:
        found = await peer.request("server/discover", {}) if revision in MODERN else peer.transcript.frames("server")[0]
        assert "resources" not in found["result"]["capabilities"]
        for method, params in (
            ("resources/list", {}),
            ("resources/templates/list", {}),
            ("resources/read", {"uri": "a:b"}),
        ):
            assert (await peer.error(method, params))["code"] == -32601


@everywhere
@pytest.mark.requirement("RES-18", "RES-018")
async def test_a_resource_says_of_itself_what_its_revision_knows(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        found = (await resources_of(peer))["library://moby-dick"]
        wanted = {
            "uri": "library://moby-dick",
            "name": "moby_dick",
            "description": "The whale.",
            "mimeType": "text/markdown",
            "size": 17,
            "annotations": {"audience": ["user", "assistant"], "priority": 0.8},
        }
        if revision >= "2025-06-18":
            wanted |= {"title": "Moby Dick", "_meta": {"com.example/shelf": 7}}
            wanted["annotations"]["lastModified"] = "2025-01-12T15:00:58Z"
        if revision >= "2025-11-25":
            wanted["icons"] = [{"src": "https://example.com/whale.png", "mimeType": "image/png", "sizes": ["48x48"]}]
        assert found == wanted
        assert (await resources_of(peer))["library://plain"] == {"uri": "library://plain", "name": "plain"}


@everywhere
@pytest.mark.requirement("RES-19", "RES-018", "RES-22")
async def test_a_template_says_of_itself_what_its_revision_knows(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        found = await templates_of(peer)
        assert list(found) == [
            "library://books/{id}",
            "library://pages/{+path}{?from_line}",
            "private://notes/{id}",
            "file:///folder/{+path}",
        ]
        wanted = {
            "uriTemplate": "library://books/{id}",
            "name": "book",
            "description": "One book by its number.",
            "mimeType": "text/plain",
            "annotations": {"audience": ["user"], "priority": 1},
        }
        wanted |= {"title": "A book"} if revision >= "2025-06-18" else {}
        wanted |= {"icons": [{"src": "https://example.com/book.png"}]} if revision >= "2025-11-25" else {}
        assert found["library://books/{id}"] == wanted
        assert "mimeType" not in found["file:///folder/{+path}"]  # its files are of many types


@everywhere
@pytest.mark.requirement("RES-23", "RES-017")
async def test_annotations_are_those_of_the_specification(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        found = [*(await resources_of(peer)).values(), *(await templates_of(peer)).values()]
        told = [each["annotations"] for each in found if "annotations" in each]
        assert len(told) >= 3
        for each in told:
            assert set(each) <= {"audience", "priority"} | ({"lastModified"} if revision >= "2025-06-18" else set())
            assert set(each.get("audience", [])) <= {"user", "assistant"} and 0 <= each.get("priority", 0) <= 1
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", each.get("lastModified", "2025-01-12T15:00:58Z"))


@pytest.mark.requirement("RES-23", "RES-017")
@pytest.mark.parametrize("told", [{"audience": ["all"]}, {"priority": 2}, {"priority": -1}, {"last_modified": "soon"}])
def test_other_annotations_cannot_be_registered(told):
    with pytest.raises(LocalError, match="annotations"):
        Server("s").resource("a:b", annotations=Annotations(**told))(lambda: "")


@everywhere
@pytest.mark.requirement("RES-11", "RES-008")
async def test_every_uri_that_is_told_is_one(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        uris = list(await resources_of(peer))
        assert len({uri.partition(":")[0] for uri in uris}) >= 3
        for uri in uris:
            assert URI.fullmatch(uri), uri
        for uri in await templates_of(peer):
            assert URI.fullmatch(
                re.sub(r"\{\?.*?\}", "?a=1", uri).replace("{", "").replace("}", "").replace("+", "")
            ), uri


@pytest.mark.requirement("RES-11", "RES-008", "RES-19")
@pytest.mark.parametrize(
    "uri", ["no uri", "1a:b", "ä:b", "a:b c", "a:{b", "a:{b:3}", "a://h:x/", "a:%zz", "{a}:b", "a:{b}{c}"]
)
def test_what_is_no_uri_and_no_template_cannot_be_registered(uri):
    async def function(a: str = "", b: str = "", c: str = ""): ...

    async def plain(): ...

    with pytest.raises(LocalError):
        Server("s").resource(uri)(function if "{" in uri else plain)


# --- reading ---


@everywhere
@pytest.mark.requirement("RES-16", "RES-015", "RES-20", "RES-21", "RES-019", "RES-003")
async def test_text_is_text_and_anything_else_a_blob(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        assert await read(peer, "library://plain") == [
            {"uri": "library://plain", "mimeType": "text/plain", "text": "plain"}
        ]
        [cover] = await read(peer, "library://cover")
        assert base64.b64decode(cover["blob"], validate=True) == b"\x89PNG\r\n\x1a\n\x00\xff" and "text" not in cover
        [record] = await read(peer, "library://record")
        assert (record["mimeType"], record["text"]) == ("application/json", '{"title":"Emma"}')
        both = await read(peer, "library://both")
        assert [(each["uri"], "text" in each, "blob" in each) for each in both] == [
            ("library://both/1", True, False),
            ("library://both/2", False, True),
        ]
        [raw] = await read(peer, "file:///folder/sub/raw")
        assert base64.b64decode(raw["blob"], validate=True) == b"\0\1\xff" and "text" not in raw
        [file] = await read(peer, "file:///folder/sub/b.json")
        assert (file["text"], file["mimeType"]) == ('{"b": 1}\n', "application/json")


@everywhere
@pytest.mark.requirement("RES-19", "RES-20")
async def test_a_template_is_read_by_the_uris_it_makes(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        assert await read(peer, "library://books/1") == [
            {"uri": "library://books/1", "mimeType": "text/plain", "text": "Moby Dick"}
        ]
        [page] = await read(peer, "library://pages/a%20b/c?from_line=7")
        assert page["text"] == "a b/c from 7"


@everywhere
@pytest.mark.requirement("RES-10", "RES-007")
async def test_a_folder_is_of_the_type_of_folders(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        assert (await resources_of(peer))["file:///folder/"]["mimeType"] == "inode/directory"
        [top] = await read(peer, "file:///folder/")
        assert (top["mimeType"], top["text"].split()) == (
            "inode/directory",
            ["file:///folder/a.txt", "file:///folder/sub"],
        )


# --- what is not there, what fails, what leads elsewhere ---


@everywhere
@pytest.mark.requirement("RES-12", "RES-009", "RES-010", "RES-011")
@pytest.mark.parametrize(
    "uri", ["library://none", "library://books/99", "library://books/x", "other:thing", "file:///folder/no"]
)
async def test_what_is_not_there_is_named_in_an_error(carrier, revision, uri):
    async with speaking(carrier, revision, server="library") as peer:
        error = await peer.error("resources/read", {"uri": uri})
        assert error["code"] == NOT_FOUND[revision] and error["data"]["uri"] == uri


@everywhere
@pytest.mark.requirement("RES-13", "RES-012")
async def test_a_failure_is_an_internal_error_with_a_reference(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        error = await peer.error("resources/read", {"uri": "library://broken"})
        assert error["code"] == -32603
        assert re.fullmatch(
            r"The resource library://broken failed unexpectedly \(reference [0-9a-f]{8}\)", error["message"]
        )
        assert "secret" not in str(error) and "Traceback" not in str(error)
        assert (await call(peer, "count", what="failed"))["content"][0]["text"] == "1"
        assert await read(peer, "library://plain")  # and the server lives


CLIMBING = [
    "../wire_peer.py",
    "sub/../../wire_peer.py",
    "%2e%2e/wire_peer.py",
    "%2E%2E%2Fwire_peer.py",
    "..%2fwire_peer.py",
    "sub/%2e%2e/%2e%2e/wire_peer.py",
    "%252e%252e/wire_peer.py",
    "..%5Cwire_peer.py",
    "%5C..%5Cwire_peer.py",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "C:/windows",
    "C%3A%5Cwindows",
    "a.txt%00",
    "./a.txt",
    "sub//b.json",
    ".hidden",
    "out",
    "up/wire_peer.py",
]


@everywhere
@pytest.mark.requirement("RES-14", "RES-013", "RES-016")
async def test_no_uri_leads_out_of_its_folder(carrier, revision):
    """Neither by its letters nor by a link that lies in the folder, and not by a `{+path}` of the author's own."""
    async with speaking(carrier, revision, server="library") as peer:
        for path in CLIMBING:
            error = await peer.error("resources/read", {"uri": f"file:///folder/{path}"})
            assert error["code"] == NOT_FOUND[revision], path
        for path in CLIMBING[:-3]:
            error = await peer.error("resources/read", {"uri": f"library://pages/{path}"})
            assert error["code"] == NOT_FOUND[revision], path
        listed = await read(peer, "file:///folder/")
        assert "out" not in listed[0]["text"] and "hidden" not in listed[0]["text"]


@everywhere
@pytest.mark.requirement("RES-14", "RES-013")
async def test_what_is_no_uri_is_refused(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        for uri in ("plain", "library:// plain", "LIBRARY://plain", "library://%", "library://pla[n", "x" * 3000):
            error = await peer.error("resources/read", {"uri": uri}, judged=False)
            assert error["code"] == NOT_FOUND[revision], uri[:50]


@carriers
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.requirement("RES-14", "RES-013")
async def test_what_no_header_could_say_is_refused_too(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        for uri in ("", "library://plain\n", "library://ä", "library://\0", "x" * 100_000):
            error = await peer.error("resources/read", {"uri": uri}, judged=False)
            assert error["code"] == NOT_FOUND[revision], uri[:50]
        for params in ({}, {"uri": 5}, {"uri": None}, {"uri": ["library://plain"]}):
            assert (await peer.error("resources/read", params, judged=False))["code"] == -32602


@everywhere
@pytest.mark.requirement("RES-15", "RES-17", "RES-014")
async def test_permission_is_asked_for_before_anything_is_done(carrier, revision):
    """A filter of the author's decides; what may not be read answers like what is not there, and nothing runs."""
    async with speaking(carrier, revision, server="library") as peer:
        refused = await peer.error("resources/read", {"uri": "private://diary"})
        missing = await peer.error("resources/read", {"uri": "private://nothing"})
        assert refused["code"] == NOT_FOUND[revision] and refused["message"] == missing["message"]
        assert (await call(peer, "count", what="private"))["content"][0]["text"] == "0"
        await call(peer, "allow")
        assert (await read(peer, "private://diary"))[0]["text"] == "dear diary"
        assert (await call(peer, "count", what="private"))["content"][0]["text"] == "1"


# --- changes ---


@carriers
@handshake
@pytest.mark.requirement("RES-03")
@pytest.mark.parametrize("kind", ["resources", "templates"])
async def test_a_change_of_the_list_is_told(carrier, revision, kind):
    async with speaking(carrier, revision, server="library") as peer:
        for tool in ("add", "remove"):
            await call(peer, tool, kind=kind, name="x")
            await settled(peer)
            assert [frame["method"] for frame in peer.heard] == [CHANGED]
            peer.heard.clear()


@carriers
@handshake
@pytest.mark.requirement("RES-05", "RES-06", "RES-07")
@pytest.mark.parametrize("uri", ["library://plain", "library://books/7", "library://not-yet"])
async def test_updates_come_for_what_is_subscribed_to_and_no_longer(carrier, revision, uri):
    """A resource, a URI of a template, or one that may come later."""
    async with speaking(carrier, revision, server="library") as peer:
        await call(peer, "touch", uri=uri)
        await settled(peer)
        assert peer.heard == []
        assert await peer.result("resources/subscribe", {"uri": uri}) == {}
        await call(peer, "touch", uri=uri)
        await call(peer, "touch", uri="library://cover")
        await settled(peer)
        assert [(frame["method"], frame["params"]) for frame in peer.heard] == [(UPDATED, {"uri": uri})]
        peer.heard.clear()
        assert await peer.result("resources/unsubscribe", {"uri": uri}) == {}
        await call(peer, "touch", uri=uri)
        await settled(peer)
        assert peer.heard == []


@everywhere
@pytest.mark.requirement("SUBS-019")
async def test_a_burst_of_changes_is_told_once_and_a_folder_hears_of_its_files(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        folder, file = "file:///folder/sub", "file:///folder/sub/b.json"
        if carrier == "http":
            stream = await peer.listen({"resourceSubscriptions": [folder, file, "library://plain"]}, id="s")
        elif revision in MODERN:
            await listen(peer, {"resourceSubscriptions": [folder, file, "library://plain"]}, id="s")
        else:
            for uri in (folder, file, "library://plain"):
                await peer.result("resources/subscribe", {"uri": uri})
        await call(peer, "touch_file", path="sub/b.json")
        if carrier == "http":
            assert {(await stream.event())["params"]["uri"] for _ in range(2)} == {folder, file}
            return
        await settled(peer)
        assert sorted(frame["params"]["uri"] for frame in peer.heard) == [folder, file]


@handshake
@pytest.mark.requirement("RES-05")
async def test_a_connection_that_did_not_subscribe_hears_nothing(revision):
    server = Server("s")

    @server.resource("a:b")
    async def thing() -> str:
        return ""

    @server.tool
    async def noop() -> str:
        return ""

    async with connected(server, revision) as one, connected(server, revision) as two:
        await one.result("resources/subscribe", {"uri": "a:b"})
        await two.result("resources/subscribe", {"uri": "a:c"})
        await settled(one)
        for _ in range(100):
            server.resource_changed("a:b")
        assert (await hears(one, lambda frame: "method" in frame))["params"] == {"uri": "a:b"}
        await settled(one)
        await settled(two)
        assert one.heard == []  # a burst is told once
        assert two.heard == []


@carriers
@handshake
@pytest.mark.requirement("RES-14")
async def test_only_uris_can_be_watched(carrier, revision):
    async with speaking(carrier, revision, server="library") as peer:
        for uri in ("", "plain", "a b:c", "library://pla in", "a:" + "b" * 9000):
            assert (await peer.error("resources/subscribe", {"uri": uri}, judged=False))["code"] == -32602


@carriers
@pytest.mark.requirement("RES-013")
async def test_only_uris_can_be_listened_to(carrier):
    async with speaking(carrier, MODERN[0], server="library") as peer:
        for uri in ("", "plain", "a b:c", "a:" + "b" * 9000):
            wanted = {"notifications": {"resourceSubscriptions": [uri]}}
            assert (await peer.error("subscriptions/listen", wanted, judged=False))["code"] == -32602


# --- the client ---


@carriers
@handshake
@pytest.mark.requirement("RES-04")
async def test_a_client_subscribes_only_where_that_is_declared(carrier, revision):
    async with talking(carrier, revision, capabilities={"resources": {"listChanged": True}}) as (client, peer):
        with pytest.raises(LocalError, match="does not offer"):
            await client.request("resources/subscribe", {"uri": "a:b"})
        await client_settled(client, peer)
        assert "resources/subscribe" not in [frame.get("method") for frame in peer.transcript.frames("client")]


@carriers
@pytest.mark.parametrize("revision", ALL)
@pytest.mark.requirement("RES-23")
async def test_our_client_reads_annotations(carrier, revision):
    command = [sys.executable, "-m", "interlock", "run", library.__file__]
    target = library.server if carrier == "memory" else command
    async with Client(target, revision=revision) as client:
        [found] = [each for each in await client.list_resources() if each.uri == "library://moby-dick"]
        assert (found.annotations.audience, found.annotations.priority) == (["user", "assistant"], 0.8)
        with pytest.raises(Refused) as caught:
            await client.read_resource("library://none")
        assert caught.value.code == NOT_FOUND[revision]
