"""server/resources/safe_files.py: what lies below one folder can be read, and nothing else, whatever links are put
there."""

import os
import shutil
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.server.resources.safe_files import FileTree, NotThere
from interlock.wire.errors import InternalError
from support.properties import many


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "docs"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("A")
    (folder / "sub" / "b.txt").write_text("BB")
    (folder / ".env").write_text("secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret")
    (tmp_path / "docs-secret").mkdir()
    (tmp_path / "docs-secret" / "key").write_text("secret")
    (tmp_path / "key").write_text("secret")
    return folder


@pytest.fixture(params=[True, False], ids=["stepwise", "looking"])
def tree(root, request):
    return FileTree(root, hidden=False, most_bytes=100, stepwise=request.param)


def test_this_system_opens_step_by_step(root):
    assert FileTree(root, hidden=False, most_bytes=1)._stepwise


def test_files_and_folders(tree):
    assert tree.read(["a.txt"]) == b"A"
    assert tree.read(["sub", "b.txt"]) == b"BB"
    assert [(entry.name, entry.folder) for entry in tree.read([])] == [("a.txt", False), ("sub", True)]
    assert [(entry.name, entry.folder) for entry in tree.read(["sub"])] == [("b.txt", False), ("deep", True)]
    assert tree.read(["sub", "deep"]) == []
    [entry] = [entry for entry in tree.entries([]) if not entry.folder]
    assert entry.size == 1 and entry.changed == os.stat(tree.root / "a.txt").st_mtime


@pytest.mark.parametrize(
    "parts",
    [
        [".."],
        ["..", "key"],
        ["sub", "..", "a.txt"],
        ["."],
        [""],
        ["/etc/passwd"],
        ["sub/b.txt"],
        ["..\\key"],
        ["a.txt\0"],
        ["C:"],
        ["none"],
        ["a.txt", "b"],
        ["..", "docs-secret", "key"],
        ["a" * 300],
        ["a"] * 100,
        [".env"],
        [".git"],
        [".git", "config"],
        ["%2e%2e"],
        ["\udcff"],
    ],
)
def test_what_is_not_there(tree, parts):
    with pytest.raises(NotThere):
        tree.read(parts)
    assert tree.entries(parts) == []


def test_hidden_names_are_seen_if_the_author_wants(root):
    tree = FileTree(root, hidden=True, most_bytes=100)
    assert tree.read([".env"]) == b"secret"
    assert [entry.name for entry in tree.entries([])] == [".env", ".git", "a.txt", "sub"]
    with pytest.raises(NotThere):
        tree.read([".."])


def test_no_link_is_followed_or_listed(tree, root):
    (root / "to_file").symlink_to(root / "a.txt")
    (root / "to_secret").symlink_to(root.parent / "key")
    (root / "to_folder").symlink_to(root.parent)
    (root / "sub" / "up").symlink_to("..")
    for parts in (
        ["to_file"],
        ["to_secret"],
        ["to_folder"],
        ["to_folder", "key"],
        ["sub", "up"],
        ["sub", "up", "a.txt"],
    ):
        with pytest.raises(NotThere):
            tree.read(parts)
        assert tree.entries(parts) == []
    assert [entry.name for entry in tree.entries([])] == ["a.txt", "sub"]
    assert [entry.name for entry in tree.entries(["sub"])] == ["b.txt", "deep"]


def test_the_way_to_the_root_may_have_links(root):
    link = root.parent / "link"
    link.symlink_to(root)
    assert FileTree(link, hidden=False, most_bytes=100).read(["a.txt"]) == b"A"


def test_a_name_that_the_locale_has_no_letters_for_is_not_there(root):
    code = """if True:
        import sys
        from interlock.server.resources.safe_files import FileTree, NotThere
        for stepwise in (True, False):
            try:
                FileTree(sys.argv[1], hidden=False, most_bytes=100, stepwise=stepwise).read(["\\xe4"])
            except NotThere:
                print("not there")
    """
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run([sys.executable, "-c", code, str(root)], env=ascii_only, capture_output=True, text=True)
    assert (run.stdout.split("\n"), run.stderr) == (["not there", "not there", ""], "")


def test_a_pipe_is_not_there_and_blocks_nobody(tree, root):
    os.mkfifo(root / "pipe")
    with pytest.raises(NotThere):
        tree.read(["pipe"])
    assert "pipe" not in [entry.name for entry in tree.entries([])]


def test_what_cannot_be_read_is_not_there(tree, root):
    if os.geteuid() == 0:
        (root / "a.txt").unlink()  # everything can be read: only what is gone cannot
    else:
        (root / "a.txt").chmod(0)
    with pytest.raises(NotThere):
        tree.read(["a.txt"])


@pytest.mark.parametrize("parts", [["a.txt"], ["sub", "deep"]], ids=["file", "folder"])
def test_what_goes_between_the_look_and_the_opening_is_not_there(root, parts):
    """Where paths cannot be opened step by step, opening can fail after the first look: gone, or without permission."""

    class Vanishing(FileTree):
        def _looked_at(self, parts):
            path = super()._looked_at(parts)
            os.rename(path, path + "-gone")
            return path

    with pytest.raises(NotThere):
        Vanishing(root, hidden=False, most_bytes=100, stepwise=False).read(parts)
    shutil.rmtree(root / "sub")
    (root / "sub" / "deep").mkdir(parents=True)
    assert Vanishing(root, hidden=False, most_bytes=100, stepwise=False).entries(["sub", "deep"]) == []


@pytest.mark.parametrize(("size", "fits"), [(0, True), (100, True), (101, False), (5000, False)])
def test_a_file_has_a_largest_size(tree, root, size, fits):
    (root / "big").write_bytes(b"x" * size)
    if fits:
        assert len(tree.read(["big"])) == size
    else:
        with pytest.raises(InternalError, match=f"{size} bytes, where 100"):
            tree.read(["big"])


def test_a_size_that_lies_is_noticed(root):
    """Files of the kernel say that they are empty."""
    if not os.path.exists("/proc/self/maps") or os.stat("/proc/self/maps").st_size:
        return
    tree = FileTree("/proc/self", hidden=False, most_bytes=10)
    with pytest.raises(InternalError, match="11 bytes"):
        tree.read(["maps"])


def test_names_that_no_uri_can_say_are_left_out(tree, root):
    for name in (b"x:y", b"back\\slash", b"new\nline", b"%2e%2e", b"\xff"):
        with open(os.path.join(os.fsencode(root), name), "wb"):
            pass
    assert [entry.name for entry in tree.entries([])] == ["a.txt", "sub"]


@pytest.mark.parametrize("what", ["missing", "file"])
def test_a_root_is_a_folder(root, what):
    with pytest.raises(OSError):
        FileTree(root / ("a.txt" if what == "file" else "missing"), hidden=False, most_bytes=1)


def test_nothing_stays_open(tree):
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    before = len(os.listdir(folder))
    for parts in (["a.txt"], ["sub"], [], ["none"], ["sub", "none"], ["a.txt", "b"]):
        try:
            tree.read(parts)
        except NotThere:
            pass
    assert len(os.listdir(folder)) == before


@pytest.mark.parametrize("becomes", ["link", "nothing"])
def test_looking_again_notices_what_changed(root, becomes):
    """Where paths cannot be opened step by step, what became a link while it was read is not given out."""
    tree = FileTree(root, hidden=False, most_bytes=100, stepwise=False)
    with pytest.raises(NotThere), tree._opened(["a.txt"]):
        (root / "a.txt").unlink()
        if becomes == "link":
            (root / "a.txt").symlink_to(root.parent / "key")


def test_a_link_put_in_place_while_it_is_read_leads_nowhere(root):
    """Somebody swaps a folder and a link to another one as fast as he can: no step ever follows the link."""
    tree = FileTree(root, hidden=False, most_bytes=100)
    (root.parent / "docs-secret" / "b.txt").write_text("secret")
    ending = threading.Event()

    def swap():
        while not ending.is_set():
            os.rename(root / "sub", root / "kept")
            os.symlink(root.parent / "docs-secret", root / "sub")
            os.unlink(root / "sub")
            os.rename(root / "kept", root / "sub")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                seen.add(tree.read(["sub", "b.txt"]))
            except NotThere:
                pass
    finally:
        ending.set()
        thread.join()
    assert seen <= {b"BB"}


NAMES = st.text("ab./\\:%2e~-\0", min_size=1, max_size=6)


@many(200)
@given(parts=st.lists(NAMES, max_size=4))
def test_no_name_leads_out(root, parts):
    for stepwise in (True, False):
        tree = FileTree(root, hidden=True, most_bytes=100, stepwise=stepwise)
        try:
            found = tree.read(parts)
        except NotThere:
            continue
        path = os.path.realpath(os.path.join(root, *parts))
        assert path == str(root) or path.startswith(str(root) + os.sep)
        assert isinstance(found, list) == stat.S_ISDIR(os.lstat(path).st_mode)
