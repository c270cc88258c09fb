"""server/resources/folder.py: a folder as resources, from the list to the reading."""

import os

import pytest

from interlock import Client, Refused, Server, files
from interlock.wire.errors import LocalError

PNG = b"\x89PNG\r\n\x1a\n\x00"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a b.md").write_text("# A")
    (folder / "sub" / "dot.png").write_bytes(PNG)
    (folder / "sub" / "data.json").write_text("{}")
    (folder / "sub" / "raw.txt").write_bytes(b"\xff\xfe")
    (folder / "LICENSE").write_text("do")
    (folder / ".env").write_text("secret")
    (tmp_path / "key").write_text("secret")
    os.utime(folder / "a b.md", (1_700_000_000, 1_700_000_000))
    return folder


def serving(root, **options):
    server = Server("s")
    return server, files(server, root, uri="docs:///", **options)


async def listed(server):
    async with Client(server) as client:
        return {resource.uri: resource for resource in await client.list_resources()}


async def read(server, uri):
    async with Client(server) as client:
        [contents] = await client.read_resource(uri)
        return contents


async def test_the_folder_and_its_files_are_listed(root):
    found = await listed(serving(root)[0])
    assert list(found) == [
        "docs:///",
        "docs:///LICENSE",
        "docs:///a%20b.md",
        "docs:///sub/data.json",
        "docs:///sub/dot.png",
        "docs:///sub/raw.txt",
    ]
    assert (found["docs:///"].mime_type, found["docs:///"].name) == ("inode/directory", "docs")
    note = found["docs:///a%20b.md"]
    assert (note.name, note.mime_type, note.size) == ("a b.md", "text/markdown", 3)
    assert note.annotations.last_modified == "2023-11-14T22:13:20Z"


async def test_a_template_reads_all_of_it(root):
    server, _ = serving(root, most_listed=0)
    assert list(await listed(server)) == ["docs:///"]
    async with Client(server) as client:
        [template] = await client.list_resource_templates()
        assert template.uri_template == "docs:///{+path}"
    assert (await read(server, "docs:///sub/data.json")).text == "{}"


@pytest.mark.parametrize(
    ("path", "member", "held", "mime_type"),
    [
        ("a%20b.md", "text", "# A", "text/markdown"),
        ("LICENSE", "text", "do", "text/plain"),
        ("sub/data.json", "text", "{}", "application/json"),
        ("sub/dot.png", "blob", "iVBORw0KGgoA", "image/png"),
        ("sub/raw.txt", "blob", "//4=", "text/plain"),  # its name says text, its bytes do not
    ],
)
@pytest.mark.parametrize("most_listed", [0, 100])
async def test_a_file_is_text_if_it_is_text(root, path, member, held, mime_type, most_listed):
    contents = await read(serving(root, most_listed=most_listed)[0], f"docs:///{path}")
    assert (contents.uri, getattr(contents, member), contents.mime_type) == (f"docs:///{path}", held, mime_type)


async def test_a_folder_is_a_list_of_what_is_in_it(root):
    server, _ = serving(root)
    top = await read(server, "docs:///")
    assert (top.mime_type, top.text.split("\n")) == (
        "inode/directory",
        ["docs:///LICENSE", "docs:///a%20b.md", "docs:///sub"],
    )
    sub = await read(server, "docs:///sub")
    assert sub.text.split("\n") == ["docs:///sub/data.json", "docs:///sub/dot.png", "docs:///sub/raw.txt"]


async def test_a_folder_of_many_says_how_many_more(root):
    for number in range(1003):
        (root / "sub" / f"n{number:04}").touch()
    lines = (await read(serving(root, most_listed=0)[0], "docs:///sub")).text.split("\n")
    assert len(lines) == 1001 and lines[-1] == "# and 6 more"


@pytest.mark.parametrize(
    "path",
    [
        "none",
        ".env",
        "../key",
        "%2e%2e/key",
        "..%2Fkey",
        "sub/../../key",
        "%2Fetc%2Fpasswd",
        "/etc/passwd",
        "sub/",
        "a%5Cb",
    ],
)
async def test_everything_else_is_not_there(root, path):
    with pytest.raises(Refused) as caught:
        await read(serving(root)[0], f"docs:///{path}")
    assert caught.value.code == -32602 and caught.value.data == {"uri": f"docs:///{path}"}
    assert "secret" not in str(caught.value)


async def test_a_large_file_is_refused(root):
    (root / "big").write_bytes(b"x" * 11)
    with pytest.raises(Refused, match="Too large") as caught:
        await read(serving(root, most_bytes=10)[0], "docs:///big")
    assert caught.value.code == -32603


async def test_paths_are_completed(root):
    server, _ = serving(root)
    ref = {"type": "ref/resource", "uri": "docs:///{+path}"}
    async with Client(server) as client:
        for typed, found in {
            "": ["LICENSE", "a b.md", "sub"],
            "a": ["a b.md"],
            "sub/d": ["sub/data.json", "sub/dot.png"],
            "../": [],
            ".": [],
            "none/": [],
            "/": [],
        }.items():
            asked = {"ref": ref, "argument": {"name": "path", "value": typed}}
            assert (await client.request("completion/complete", asked))["completion"]["values"] == found, typed


async def test_refreshing_lists_what_is_there_now(root):
    server, tree = serving(root)
    (root / "LICENSE").unlink()
    (root / "new.txt").write_text("n")
    (root / "a b.md").write_text("longer")
    tree.refresh()
    found = await listed(server)
    assert "docs:///LICENSE" not in found and found["docs:///new.txt"].size == 1
    assert found["docs:///a%20b.md"].size == 6
    before = list(found)
    tree.refresh()
    assert list(await listed(server)) == before


async def test_the_list_has_a_length(root):
    for number in range(30):
        (root / f"n{number:02}").touch()
    assert len(await listed(serving(root, most_listed=10)[0])) == 11


def test_changes_are_told_for_the_file_and_its_folder(root):
    server, tree = serving(root)
    told = []
    server.resource_changed = told.append
    tree.changed("sub/data.json")
    tree.changed("LICENSE")
    assert told == ["docs:///sub/data.json", "docs:///sub", "docs:///LICENSE", "docs:///"]


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "a//b", "C:x"])
def test_a_path_is_named_from_the_root_on(root, path):
    with pytest.raises(LocalError, match="below"):
        serving(root)[1].uri_of(path)


def test_a_uri_of_a_file(root):
    tree = serving(root)[1]
    assert tree.uri_of("sub/ä #&?.txt") == "docs:///sub/%C3%A4%20%23%26%3F.txt"


@pytest.mark.parametrize("uri", ["docs:", "docs:///x", "docs", "docs:///{x}/"])
def test_the_place_is_a_folder(root, uri):
    with pytest.raises(LocalError):
        files(Server("s"), root, uri=uri)


def test_two_folders_have_two_places(root, tmp_path):
    server, _ = serving(root)
    files(server, tmp_path / "docs" / "sub", uri="sub:///", name="second")
    with pytest.raises(LocalError, match="already"):
        files(server, root, uri="docs:///")


def test_what_is_no_folder_is_refused(root):
    with pytest.raises(LocalError, match="no folder"):
        files(Server("s"), root / "LICENSE")
    with pytest.raises(LocalError, match="no folder"):
        files(Server("s"), root / "none")
