"""A folder as resources: listed, read and completed by path, and never left (safe_files.py says how)."""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime
from pathlib import PurePath
from urllib.parse import quote

from ...wire.errors import LocalError, ResourceNotFound
from ...wire.types.common import Annotations
from ...wire.types.content import ResourceContents
from ..mime import guess_type, is_text_type
from ..server import Server
from .resource import contents_of
from .safe_files import Entry, FileTree, NotThere
from .uri_values import is_relative_path

__all__ = ["Files", "files"]

FOLDER_TYPE = "inode/directory"
_MOST_BYTES = 8 * 1024 * 1024
_MOST_LISTED = 250
_MOST_NAMES = 1000  # of one folder, when it is read; how many more there are is said
_PATH_CHARACTERS = "/!$'()*+,;=:@"  # of a path beside letters, digits and -._~ (RFC 3986); `&` ends values in a query


def files(
    server: Server,
    root: str | os.PathLike[str],
    *,
    uri: str = "files:///",
    name: str | None = None,
    hidden: bool = False,
    most_bytes: int = _MOST_BYTES,
    most_listed: int = _MOST_LISTED,
) -> Files:
    """Offer what is in the folder `root`, at `uri` and below it.

    The folder is a resource of type `inode/directory`, whose text are the URIs in it, one in a line; every file and
    folder below can be read by its path. `most_listed` files are in the list of resources too. No link is followed,
    names that begin with a dot are left out unless `hidden` is set, larger files than `most_bytes` are refused.
    """
    try:
        tree = FileTree(root, hidden=hidden, most_bytes=most_bytes)
    except OSError as error:
        raise LocalError(f"{os.fspath(root)!r:.200} is no folder that can be read ({error.strerror})") from None
    return Files(server, tree, uri, name, most_listed)


class Files:
    """A folder that a server offers. Nothing watches it: say what changed, or `refresh` the list."""

    def __init__(self, server: Server, tree: FileTree, uri: str, name: str | None, most_listed: int) -> None:
        if not uri.endswith("/") or "{" in uri:
            raise LocalError(f"{uri!r} is no URI of a folder: it ends with a slash, like docs:///")
        self._server, self._tree, self._uri, self._most_listed = server, tree, uri, most_listed
        self._listed: dict[str, Entry] = {}
        self._lock = threading.Lock()
        folder = name or tree.root.name or "files"
        server.resource(uri, name=folder, description=f"The folder {folder}", mime_type=FOLDER_TYPE)(self._top)
        server.resource(
            uri + "{+path}",
            name=f"{folder}-file",
            description=f"A file or a folder in {folder}",
            complete={"path": self._suggest},
        )(self._read)
        self.refresh()

    def uri_of(self, path: str | PurePath) -> str:
        """Where a file or folder, named from the root on, is found by clients."""
        text = path if isinstance(path, str) else path.as_posix()
        if not is_relative_path(text):
            raise LocalError(f"{text!r:.200} does not lead to anything below the folder")
        return self._uri + quote(text, safe=_PATH_CHARACTERS)

    def changed(self, path: str | PurePath) -> None:
        """Tell whoever watches that file, or the folder it is in. From any thread."""
        uri = self.uri_of(path)
        self._server.resource_changed(uri)
        above = uri[len(self._uri) :].rpartition("/")[0]
        self._server.resource_changed(self._uri + above)

    def refresh(self) -> None:
        """List what is there now; clients hear of it when something came, went or changed. From any thread."""
        with self._lock:
            found = self._walk()
            for path, entry in list(self._listed.items()):
                if found.get(path) != entry:
                    self._server.remove_resource(self.uri_of(path))
                    del self._listed[path]
                    self.changed(path)
            for path, entry in found.items():
                if path not in self._listed:
                    self._listed[path] = entry
                    self._list(path, entry)

    # --- the list ---------------------------------------------------------------------------------

    def _walk(self) -> dict[str, Entry]:
        """The first files, folder by folder, from the top down."""
        found: dict[str, Entry] = {}
        waiting: list[tuple[str, ...]] = [()]
        seen = 0
        while waiting and len(found) < self._most_listed and seen < 4 * self._most_listed:
            above, seen = waiting.pop(0), seen + 1
            for entry in self._tree.entries(above):
                if entry.folder:
                    waiting.append((*above, entry.name))
                elif len(found) < self._most_listed:
                    found["/".join((*above, entry.name))] = entry
        return found

    def _list(self, path: str, entry: Entry) -> None:
        def read() -> list[ResourceContents]:
            return self._read(path)

        changed = datetime.fromtimestamp(int(entry.changed), UTC).isoformat().replace("+00:00", "Z")
        self._server.resource(
            self.uri_of(path),
            name=path,
            mime_type=guess_type(b"", entry.name),
            size=entry.size,
            annotations=Annotations(last_modified=changed),
        )(read)

    # --- reading ----------------------------------------------------------------------------------

    def _top(self) -> list[ResourceContents]:
        return self._contents(self._uri, ())

    def _read(self, path: str) -> list[ResourceContents]:
        return self._contents(self.uri_of(path), tuple(path.split("/")))

    def _contents(self, uri: str, parts: tuple[str, ...]) -> list[ResourceContents]:
        try:
            found = self._tree.read(parts)
        except NotThere:
            raise ResourceNotFound("Resource not found", {"uri": uri}) from None
        if isinstance(found, bytes):
            return self._file(uri, parts[-1], found)
        lines = [self.uri_of("/".join((*parts, entry.name))) for entry in found[:_MOST_NAMES]]
        if len(found) > _MOST_NAMES:
            lines.append(f"# and {len(found) - _MOST_NAMES} more")  # a comment in a list of URIs (RFC 2483)
        return [ResourceContents(uri=uri, mime_type=FOLDER_TYPE, text="\n".join(lines))]

    def _file(self, uri: str, name: str, data: bytes) -> list[ResourceContents]:
        """As text only if it really is text (schema.ts#TextResourceContents)."""
        mime_type = guess_type(data, name)
        text = _as_text(data) if is_text_type(mime_type or "text/plain") else None
        default = "application/octet-stream" if text is None else "text/plain"
        return contents_of(data if text is None else text, uri, mime_type or default)

    # --- suggestions ------------------------------------------------------------------------------

    def _suggest(self, typed: str) -> list[str]:
        """Paths that go on where this one ends."""
        above, slash, begun = typed.rpartition("/")
        if slash and not is_relative_path(above):
            return []
        parts = tuple(above.split("/")) if above else ()
        names = [entry.name for entry in self._tree.entries(parts) if entry.name.startswith(begun)]
        return [above + slash + each for each in names]


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8") if b"\0" not in data else None
    except UnicodeDecodeError:
        return None
