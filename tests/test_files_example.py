"""examples/files.py as its users run it: a process, a real folder, and clients of every revision with their roots."""

from __future__ import annotations

import asyncio
import os
import re

import pytest

from interlock import Refused
from interop.told import served
from support.examples import Ears, command, connect, process, refusal, script, watching
from support.wire_peer import ALL, MODERN

every_revision = pytest.mark.parametrize("revision", ALL)
STRUCTURED = ALL[2:]
NO_ROOTS = "This client does not tell where its user works (roots), so nothing is opened"


@pytest.fixture
def folder(tmp_path):
    """A folder with something in it, beside one that must not be touched."""
    for path, text in {
        "data/a.txt": "one\nTwo\nthree\n",
        "data/sub/b.md": "# Two again\n",
        "data/sub/deep/c d.txt": "two in the deep",
        "data/.secret": "two hidden",
        "data-secret/outside.txt": "two outside",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / "data" / "raw.bin").write_bytes(b"two\x00\xff")
    (tmp_path / "data" / "way_out").symlink_to(tmp_path / "data-secret")
    (tmp_path / "data" / "link.txt").symlink_to(tmp_path / "data-secret" / "outside.txt")
    (tmp_path / "data" / "inside.txt").symlink_to(tmp_path / "data" / "a.txt")
    return tmp_path / "data"


@pytest.fixture
def served_folder(folder):
    """Connect to a process of its own that serves the folder, with these roots."""

    def open_client(revision, *roots, **options):
        given = {"roots": [root.as_uri() for root in roots]} if roots else {}
        return connect(process("files.py", FILES_ROOT=folder), revision, **given, **options)

    return open_client


def everything_in(folder):
    """What lies there, to see that nothing changed."""
    return {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}


# --- what works -------------------------------------------------------------------------------------


@every_revision
async def test_files_are_read_searched_and_written_within_the_roots(served_folder, folder, revision):
    async with served_folder(revision, folder) as client:
        call = client.call_tool
        assert (await call("read_file", {"path": "a.txt"})).text == "one\nTwo\nthree\n"
        assert (await call("read_file", {"path": "a.txt", "first": 2, "most": 1})).text == "Two\n\n… 1 more lines"
        [block] = (await call("read_file", {"path": "raw.bin"})).content
        assert block.resource.blob == "dHdvAP8="
        found = (await call("search_files", {"words": "TWO"})).text
        hits = re.findall(r'"path":"([^"]+)","line":(\d+)', found)
        assert hits == [("a.txt", "2"), ("sub/b.md", "1"), ("sub/deep/c d.txt", "1")] and '"complete":true' in found
        few = (await call("search_files", {"words": "two", "below": "sub", "most": 1})).text
        assert few.count('"path"') == 1 and '"complete":false' in few
        written = await call("write_file", {"path": "sub/new.txt", "text": "Grüße\n"})
        assert revision not in STRUCTURED or written.structured == {
            "uri": "files:///sub/new.txt",
            "bytes": 8,
            "replaced": False,
        }
        assert "is there already" in await refusal(call("write_file", {"path": "sub/new.txt", "text": "x"}))
        assert (folder / "sub" / "new.txt").read_text(encoding="utf-8") == "Grüße\n"
        again = await call("write_file", {"path": "sub/new.txt", "text": "x", "overwrite": True})
        assert '"replaced":true' in again.text
        assert (await client.read_resource("files:///sub/new.txt"))[0].text == "x"
    assert sorted(os.listdir(folder / "sub")) == ["b.md", "deep", "new.txt"]  # nothing half written is left


@every_revision
async def test_the_resources_are_those_of_the_folder(served_folder, revision):
    async with served_folder(revision) as client:
        uris = {resource.uri for resource in await client.list_resources()}
        [top] = await client.read_resource("files:///")
        ref = {"type": "ref/resource", "uri": "files:///{+path}"}
        asked = {"ref": ref, "argument": {"name": "path", "value": "sub/d"}}
        found = await client.request("completion/complete", asked)
    listed = {"a.txt", "raw.bin", "sub/b.md", "sub/deep/c%20d.txt"}
    assert uris == {"files:///", *(f"files:///{path}" for path in listed)}
    assert top.text.splitlines() == ["files:///a.txt", "files:///raw.bin", "files:///sub"]
    assert top.mime_type == "inode/directory" and found["completion"]["values"] == ["sub/deep"]


@every_revision
async def test_who_watches_a_folder_hears_of_what_is_written(served_folder, folder, revision):
    ears = Ears()
    async with (
        served_folder(revision, folder, on_notification=ears) as client,
        watching(client, ears, "files:///a.txt", "files:///sub", lists=("resourcesListChanged",)),
    ):
        await client.call_tool("write_file", {"path": "a.txt", "text": "new", "overwrite": True})
        await ears.until("notifications/resources/updated", uri="files:///a.txt")
        await client.call_tool("write_file", {"path": "sub/n.txt", "text": "new"})
        awaited = {("notifications/resources/list_changed", None), ("notifications/resources/updated", "files:///sub")}
        while not awaited <= {(method, params.get("uri")) for method, params in ears.all}:
            await asyncio.sleep(0.01)


# --- the bound of the client ------------------------------------------------------------------------


@every_revision
async def test_without_roots_no_tool_touches_anything(served_folder, folder, revision):
    before = everything_in(folder)
    async with served_folder(revision) as client:
        for tool, arguments in (
            ("read_file", {"path": "a.txt"}),
            ("search_files", {"words": "two"}),
            ("write_file", {"path": "new.txt", "text": "x"}),
        ):
            assert await refusal(client.call_tool(tool, arguments)) == NO_ROOTS
    assert everything_in(folder) == before


@every_revision
async def test_what_is_outside_of_the_roots_is_refused(served_folder, folder, revision):
    """Below the folder, but not where the user works; and a root beside it whose name only begins alike."""
    before = everything_in(folder)
    async with served_folder(revision, folder / "sub", folder.parent / "data-secret") as client:
        assert (await client.call_tool("read_file", {"path": "sub/b.md"})).text == "# Two again\n"
        for tool, arguments in (
            ("read_file", {"path": "a.txt"}),
            ("search_files", {"words": "two"}),
            ("search_files", {"words": "two", "below": "a.txt"}),
            ("write_file", {"path": "new.txt", "text": "x"}),
            ("write_file", {"path": "a.txt", "text": "x", "overwrite": True}),
        ):
            assert "outside of what the user works in" in await refusal(client.call_tool(tool, arguments))
    assert everything_in(folder) == before


# --- the bound of the folder, for a client whose roots are the whole machine -------------------------

LEAVING = [
    "../data-secret/outside.txt",
    "sub/../../data-secret/outside.txt",
    "/etc/passwd",
    "//etc/passwd",
    "..",
    ".",
    "sub//b.md",
    "sub/",
    "..\\data-secret\\outside.txt",
    "C:/windows",
    "%2e%2e/data-secret/outside.txt",
    "a.txt\x00.png",
    "a\nb",
    "file:///etc/passwd",
]
NOT_THERE = [".secret", "way_out/outside.txt", "link.txt", "inside.txt", "nothing.txt", "a.txt/b", "x" * 300, "sub/.x"]


@pytest.mark.parametrize("revision", [ALL[0], MODERN[0]])
async def test_no_path_leads_out_of_the_folder(served_folder, folder, revision):
    before = everything_in(folder)
    async with served_folder(revision, folder.parent.parent.parent) as client:
        for path in [*LEAVING, *NOT_THERE]:
            for tool, arguments in (
                ("read_file", {"path": path}),
                ("search_files", {"words": "two", "below": path}),
            ):
                told = await refusal(client.call_tool(tool, arguments))
                assert re.search("does not lead to|outside of what|cannot be read", told), (path, told)
        for path in [*LEAVING, ".secret", ".new", "sub/.x", "way_out/new.txt", "link.txt", "inside.txt", "sub", "no/x"]:
            written = client.call_tool("write_file", {"path": path, "text": "x", "overwrite": True})
            told = await refusal(written)
            assert re.search("does not lead to|outside of what|hidden|cannot be written|is no file", told), (path, told)
        for uri in ("files:///../data-secret/outside.txt", "files:///%2e%2e/x", "files:///way_out", "files:///.secret"):
            with pytest.raises(Refused):
                await client.read_resource(uri)
    assert everything_in(folder) == before
    assert (folder / "link.txt").is_symlink() and (folder / "inside.txt").is_symlink()


@pytest.mark.parametrize("revision", [ALL[0], MODERN[0]])
async def test_hostile_arguments_are_refused_in_words(served_folder, folder, revision):
    before = everything_in(folder)
    hostile = [
        ("read_file", {"path": ""}),
        ("read_file", {"path": 5}),
        ("read_file", {"path": "x" * 1001}),
        ("read_file", {"path": "a.txt", "first": 0}),
        ("read_file", {"path": "a.txt", "most": 10**9}),
        ("read_file", {"path": "sub"}),
        ("search_files", {"words": ""}),
        ("search_files", {"words": "two", "most": 0}),
        ("write_file", {"path": "n.txt", "text": "x" * (1024 * 1024 + 1)}),
        ("write_file", {"path": "n.txt", "text": "é" * (1024 * 1024)}),
        ("write_file", {"path": "n.txt", "text": None}),
        ("write_file", {"path": "n" * 256, "text": ""}),
    ]
    async with served_folder(revision, folder) as client:
        for tool, arguments in hostile:
            told = await refusal(client.call_tool(tool, arguments))
            assert told and "reference" not in told, (tool, told)
    assert everything_in(folder) == before


async def test_a_large_file_is_neither_read_nor_searched(served_folder, folder):
    (folder / "large.txt").write_text("two\n" * 300_000)
    async with served_folder(None, folder) as client:
        assert "Too large to be read here" in await refusal(client.call_tool("read_file", {"path": "large.txt"}))
        found = await client.call_tool("search_files", {"words": "two"})
    assert "large.txt" not in found.text and found.structured["complete"] is True
    assert found.structured["looked_at"] == 8  # three folders, five files


async def test_a_full_folder_takes_no_more_names(served_folder, folder):
    for number in range(1000):
        (folder / "sub" / "deep" / f"f{number}").touch()
    async with served_folder(None, folder) as client:
        told = await refusal(client.call_tool("write_file", {"path": "sub/deep/new", "text": ""}))
        assert "which is the most" in told
        kept = await client.call_tool("write_file", {"path": "sub/deep/f1", "text": "x", "overwrite": True})
    assert kept.structured["replaced"] and (folder / "sub" / "deep" / "f1").read_text() == "x"


# --- several at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [ALL[0], MODERN[0]])
async def test_of_two_who_make_the_same_file_one_wins(served_folder, folder, revision):
    async with served_folder(revision, folder) as one, served_folder(revision, folder) as two:
        calls = [
            client.call_tool("write_file", {"path": f"n{number}.txt", "text": name * 1000})
            for number in range(20)
            for name, client in (("a", one), ("b", two))
        ]
        results = await asyncio.gather(*calls)
    assert sum(not result.is_error for result in results) == 20
    texts = {(folder / f"n{number}.txt").read_text() for number in range(20)}
    assert texts <= {"a" * 1000, "b" * 1000}


async def test_each_client_over_http_is_held_to_its_own_roots(folder, tmp_path):
    with served([*command("files.py", FILES_ROOT=folder), "--http", "--port", "0"], tmp_path / "said") as address:
        async with (
            connect(address, None, roots=[folder.as_uri()]) as wide,
            connect(address, None, roots=[(folder / "sub").as_uri()]) as narrow,
            connect(address, None) as mute,
        ):
            clients = (wide, narrow, mute) * 10
            asked = (client.call_tool("read_file", {"path": "a.txt"}) for client in clients)
            results = await asyncio.gather(*asked)
    assert [result.is_error for result in results] == [False, True, True] * 10
    assert {result.text for result in results[2::3]} == {NO_ROOTS}


async def test_the_folder_may_be_an_argument(folder):
    async with connect(script("files.py", folder), None, roots=[folder.as_uri()]) as client:
        assert (await client.call_tool("read_file", {"path": "sub/b.md"})).text == "# Two again\n"


async def test_without_a_folder_an_empty_one_is_served_and_said(tmp_path):
    with served([*command("files.py", TMPDIR=tmp_path), "--http", "--port", "0"], tmp_path / "said") as address:
        async with connect(address, None, roots=[tmp_path.as_uri()]) as client:
            assert not (await client.call_tool("write_file", {"path": "x.txt", "text": "x"})).is_error
        [made] = tmp_path.glob("files-*")
        assert (made / "x.txt").read_text() == "x"
    assert "FILES_ROOT names no folder" in (tmp_path / "said").read_text()
    assert not made.exists()
