"""A folder: its files as resources, and tools that read, search and write in it.

FILES_ROOT=some/folder interlock run examples/files.py             over stdio
FILES_ROOT=some/folder interlock run examples/files.py --http      over HTTP
python examples/files.py some/folder                               over stdio, the folder as an argument

Without a folder an empty temporary one is served that goes with the server; that is said on stderr.

Two bounds hold for every tool. The folder is the author's: no name and no link leads out of it. The roots are the
client's: what its user does not work in is not touched, not even below the folder. A client that names no roots can
read the resources, which are the folder's own, and use none of the tools.
"""

import atexit
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import msgspec

from interlock import (
    CannotAsk,
    Context,
    EmbeddedResource,
    InterlockError,
    Refused,
    ResourceContents,
    Server,
    ToolAnnotations,
    ToolError,
    files,
)

URI = "files:///"
FOLDER_TYPE = "inode/directory"
MOST_BYTES = 1024 * 1024  # of a file, read or written
MOST_NAMES = 1000  # in a folder that is written to
MOST_LOOKED_AT = 2000  # files and folders of one search
STEPWISE = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")
STEP = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)

FilePath = Annotated[
    str, msgspec.Meta(min_length=1, max_length=1000, description="A path from the folder on, like notes/today.md")
]


class Hit(msgspec.Struct):
    path: str
    line: int
    text: str


class Hits(msgspec.Struct):
    """What a search found. `complete` is false where it stopped at one of its bounds."""

    hits: list[Hit]
    looked_at: int
    complete: bool


class Written(msgspec.Struct):
    uri: str
    bytes: int
    replaced: bool


def folder() -> Path:
    """The folder to serve: the argument, else FILES_ROOT, else one of our own."""
    given = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else os.environ.get("FILES_ROOT")
    if given:
        return Path(given)
    made = tempfile.mkdtemp(prefix="files-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    print(f"files: FILES_ROOT names no folder, so an empty one is served: {made}", file=sys.stderr)
    return Path(made)


server = Server("files", version="1.0", instructions="Paths are relative to the folder that is served.")
tree = files(server, root := folder(), uri=URI, name="files", most_bytes=MOST_BYTES)
ROOT = root.resolve()


# --- the two bounds --------------------------------------------------------------------------------


def allowed(path: str, ctx: Context) -> str:
    """The URI of a path that may be opened. Below the folder by its name, within the roots by where it leads."""
    try:
        uri = tree.uri_of(path)
    except InterlockError:
        raise ToolError(f"{path!r:.200} does not lead to anything in the folder: give a path from it on") from None
    check_roots(ROOT / path, repr(path)[:200], ctx)
    return uri


def check_roots(place: Path, name: str, ctx: Context) -> None:
    try:
        within = ctx.within_roots(place, key="roots")
    except CannotAsk:
        raise ToolError("This client does not tell where its user works (roots), so nothing is opened") from None
    if not within:
        raise ToolError(f"{name} is outside of what the user works in (the client's roots), so it is not opened")


# --- tools: plain functions, which run in threads and may wait for the disk --------------------------


@server.tool(title="Read a file", annotations=ToolAnnotations(read_only_hint=True))
def read_file(
    path: FilePath,
    ctx: Context,
    first: Annotated[int, msgspec.Meta(ge=1)] = 1,
    most: Annotated[int, msgspec.Meta(ge=1, le=2000)] = 500,
) -> str | EmbeddedResource:
    """Read lines of a text; what is no text comes whole.

    Args:
        first: The line to begin with, counted from 1.
        most: How many lines.
    """
    found = read(allowed(path, ctx), path, ctx)
    if found.mime_type == FOLDER_TYPE:
        raise ToolError(f"{path!r:.200} is a folder; read {tree.uri_of(path)} to see what is in it")
    if not isinstance(found.text, str):
        return EmbeddedResource(resource=found)
    lines = found.text.splitlines(keepends=True)
    rest = len(lines) - (first - 1 + most)
    return "".join(lines[first - 1 :][:most]) + (f"\n… {rest} more lines" if rest > 0 else "")


@server.tool(title="Search in files", annotations=ToolAnnotations(read_only_hint=True), timeout=60)
def search_files(
    words: Annotated[str, msgspec.Meta(min_length=1, max_length=200)],
    ctx: Context,
    below: Annotated[str, msgspec.Meta(max_length=1000)] = "",
    most: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50,
) -> Hits:
    """Find the lines that hold some words, upper and lower case alike.

    Args:
        below: Only in this folder; nothing means everywhere.
        most: How many lines to find at most.
    """
    if below:
        start = allowed(below, ctx)
    else:
        start = URI
        check_roots(ROOT, "The whole folder", ctx)
    hits: list[Hit] = []
    looked_at = 0
    for looked_at, (path, text) in enumerate(all_below(start, ctx), start=1):
        if ctx.cancelled or looked_at > MOST_LOOKED_AT:
            break
        hits += lines_with(words.casefold(), path, text)
        ctx.progress(looked_at, message=path[:200])
        if len(hits) > most:
            break
    else:
        return Hits(hits, looked_at, complete=True)
    return Hits(hits[:most], min(looked_at, MOST_LOOKED_AT), complete=False)


@server.tool(title="Write a file", annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def write_file(
    path: FilePath,
    text: Annotated[str, msgspec.Meta(max_length=MOST_BYTES)],
    ctx: Context,
    overwrite: bool = False,
) -> Written:
    """Write a text into a file of a folder that is there: all of it, or nothing.

    Args:
        overwrite: Replace the file if there is one.
    """
    uri, data = allowed(path, ctx), text.encode()
    if len(data) > MOST_BYTES:
        raise ToolError(f"That is {len(data)} bytes, where {MOST_BYTES} are the most")
    replaced = put(path, data, overwrite)
    tree.refresh()
    tree.changed(path)
    return Written(uri, len(data), replaced)


# --- reading: only through the resources, which keep within the folder -------------------------------


def read(uri: str, path: str, ctx: Context) -> ResourceContents:
    try:
        [found] = ctx.read_resource(uri)
    except Refused as refused:
        raise ToolError(f"{path!r:.200} cannot be read: {refused.message}") from None
    return found


def all_below(start: str, ctx: Context) -> Iterator[tuple[str, str]]:
    """All that is at `start` and below, folder by folder, with its text; what has none counts all the same."""
    waiting = [start]
    while waiting:
        uri = waiting.pop(0)
        path = unquote(uri.removeprefix(URI))
        try:
            found = read(uri, path, ctx)
        except ToolError:
            if uri == start:
                raise
            yield path, ""  # too large, or gone by now
            continue
        text = found.text if isinstance(found.text, str) else ""
        if found.mime_type == FOLDER_TYPE:
            waiting += [line for line in text.splitlines() if not line.startswith("#")]
            text = ""
        yield path, text


def lines_with(words: str, path: str, text: str) -> list[Hit]:
    lines = enumerate(text.splitlines(), start=1)
    return [Hit(path, number, line[:300]) for number, line in lines if words in line.casefold()]


# --- writing: step by step, so that no link that is put in the way is followed -----------------------


def put(path: str, data: bytes, overwrite: bool) -> bool:
    """Write beside the place first, then take it at once. Was something replaced?"""
    *above, name = path.split("/")
    if any(part.startswith(".") for part in (*above, name)):
        raise ToolError(f"{path!r:.200} is hidden: names that begin with a dot are not served")
    if not STEPWISE:
        raise ToolError("This system cannot open a path without following links, so nothing is written")
    try:
        with opened(above) as place:
            return put_in(place, name, data, overwrite)
    except FileExistsError:
        raise ToolError(f"{path!r:.200} is there already; overwrite=true replaces it") from None
    except OSError as error:
        raise ToolError(f"{path!r:.200} cannot be written: {error.strerror}") from None


@contextmanager
def opened(parts: list[str]) -> Iterator[int]:
    place = os.open(ROOT, STEP)
    try:
        for part in parts:
            above, place = place, os.open(part, STEP, dir_fd=place)
            os.close(above)
        yield place
    finally:
        os.close(place)


def put_in(place: int, name: str, data: bytes, overwrite: bool) -> bool:
    there = kind_of(place, name)
    if there is not None and not stat.S_ISREG(there):
        raise ToolError(f"{name!r:.200} is no file, so it is not replaced")
    if there is None and len(os.listdir(place)) >= MOST_NAMES:
        raise ToolError(f"There are {MOST_NAMES} names in that folder already, which is the most")
    beside = f".{secrets.token_hex(8)}"
    try:
        with open(os.open(beside, NEW, 0o644, dir_fd=place), "wb") as file:
            file.write(data)
        if overwrite:
            os.replace(beside, name, src_dir_fd=place, dst_dir_fd=place)
        else:  # a new name for it: fails if the name was taken meanwhile
            os.link(beside, name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=False)
    finally:
        if kind_of(place, beside) is not None:
            os.unlink(beside, dir_fd=place)
    return there is not None


def kind_of(place: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=place, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    server.run()
