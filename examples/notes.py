"""Notes in a SQLite file: a server that keeps what people and models write down.

NOTES_DB=notes.sqlite interlock run examples/notes.py                  over stdio
NOTES_DB=notes.sqlite interlock run examples/notes.py --http           over HTTP
python examples/notes.py notes.sqlite                                  over stdio, the file as an argument

Without a file the notes are kept in a temporary one that goes with the server; that is said on stderr.

Several servers may share a file. Every write is a transaction that takes the file's one write lock first, and waits at
most five seconds for it. Nothing is deleted before the user has said yes.
"""

import contextlib
import functools
import os
import sqlite3
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from interlock import (
    CannotAsk,
    Context,
    EmbeddedResource,
    PromptMessage,
    Refused,
    ResourceContents,
    ResourceLink,
    ResourceNotFound,
    Server,
    Suggestions,
    ToolAnnotations,
    ToolError,
    ToolResult,
)

MOST_NOTES = 10_000
MOST_PAGES = 65_536  # of SQLite, 4 KiB each: a file of 256 MiB
MOST_LISTED = 200  # the newest notes are in the list of resources; all of them are found by search and by number
LOCK_SECONDS = 5.0
APPLICATION = 0x4E4F5445  # how SQLite files say whose they are: "NOTE"

SCHEMA = """
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 1,
    changed TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
);
CREATE TABLE tags (
    note INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    tag TEXT NOT NULL,
    PRIMARY KEY (note, tag)
) WITHOUT ROWID;
CREATE INDEX notes_by_tag ON tags (tag, note);
"""

Number = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1, description="The number of a note")]
Title = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="One line")]
Text = Annotated[str, msgspec.Meta(max_length=20_000, description="What the note says")]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=40)]
Tags = Annotated[list[Tag], msgspec.Meta(max_length=20, description="Words to find it by")]


class Note(msgspec.Struct):
    """One note, as programs see it."""

    id: int
    title: str
    text: str
    tags: list[str]
    version: int
    changed: str


class Line(msgspec.Struct):
    """One note among others."""

    id: int
    title: str
    tags: list[str]


class Found(msgspec.Struct):
    """A page of a search. `before` is where the next one goes on, null on the last page."""

    notes: list[Line]
    total: int
    before: int | None


class Confirmation(msgspec.Struct):
    sure: Annotated[bool, msgspec.Meta(description="Delete it for good")]


# --- the file --------------------------------------------------------------------------------------


class Store:
    """The notes of one file. Every method may be called from any thread; values only ever travel as parameters."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._writing = threading.Lock()  # waits in turn, where SQLite's own lock is asked again and again
        with self.writing() as file:
            self._prepare(file)

    def _prepare(self, file: sqlite3.Connection) -> None:
        [owner] = file.execute("PRAGMA application_id").fetchone()
        [tables] = file.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if owner == 0 and tables == 0:
            for statement in SCHEMA.split(";"):
                file.execute(statement)
            file.execute(f"PRAGMA application_id = {APPLICATION}")
        elif owner != APPLICATION:
            raise ToolError(f"{self.path} is a database of something else: it is left alone")

    @contextlib.contextmanager
    def reading(self, stop: Callable[[], bool] | None = None) -> Iterator[sqlite3.Connection]:
        """A connection of one call's own; `stop` ends a statement that runs long when nobody waits for it any more."""
        file = sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            file.execute("PRAGMA foreign_keys = ON")
            file.execute(f"PRAGMA max_page_count = {MOST_PAGES}")
            file.create_function("fold", 1, str.casefold, deterministic=True)
            file.set_progress_handler(stop, 10_000)
            yield file
        except sqlite3.OperationalError as error:
            raise _in_words(error) from error
        finally:
            file.close()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The same with the write lock held, here and in the file: all of it happens, or nothing."""
        if not self._writing.acquire(timeout=LOCK_SECONDS):
            raise ToolError("Others are writing to the notes just now; try again")
        try:
            with self.reading() as file:
                file.execute("BEGIN IMMEDIATE")
                try:
                    yield file
                except BaseException:
                    if file.in_transaction:  # without room SQLite has undone it by itself
                        file.execute("ROLLBACK")
                    raise
                file.execute("COMMIT")
        finally:
            self._writing.release()

    def note(self, id: int) -> Note | None:
        with self.reading() as file:
            return self._note(file, id)

    def add(self, title: str, text: str, tags: list[str]) -> Note:
        with self.writing() as file:
            [there] = file.execute("SELECT count(*) FROM notes").fetchone()
            if there >= MOST_NOTES:
                raise ToolError(f"There are {there} notes, which is the most: delete some first")
            id = file.execute("INSERT INTO notes (title, text) VALUES (?, ?)", (title, text)).lastrowid
            self._tag(file, id, tags)
            return self._known(file, id)

    def update(self, id: int, version: int | None, title: str | None, text: str | None, tags: list[str] | None) -> Note:
        with self.writing() as file:
            self._check(file, id, version)
            file.execute(
                "UPDATE notes SET title = coalesce(?, title), text = coalesce(?, text), version = version + 1, "
                "changed = strftime('%Y-%m-%dT%H:%M:%SZ', 'now') WHERE id = ?",
                (title, text, id),
            )
            if tags is not None:
                file.execute("DELETE FROM tags WHERE note = ?", (id,))
                self._tag(file, id, tags)
            return self._known(file, id)

    def delete(self, id: int, version: int) -> None:
        with self.writing() as file:
            self._check(file, id, version)
            file.execute("DELETE FROM notes WHERE id = ?", (id,))

    def search(
        self, words: str, tag: str | None, before: int | None, most: int, stop: Callable[[], bool] | None = None
    ) -> Found:
        """The newest first. A page begins below a number, so notes that come meanwhile move nothing."""
        where = (
            "FROM notes WHERE (instr(fold(title), fold(:words)) OR instr(fold(text), fold(:words))) "
            "AND (:tag IS NULL OR EXISTS (SELECT 1 FROM tags WHERE note = id AND tag = :tag))"
        )
        asked = {"words": words, "tag": tag, "before": before, "most": most + 1}
        with self.reading(stop) as file:
            [total] = file.execute(f"SELECT count(*) {where}", asked).fetchone()
            page = f"SELECT id, title {where} AND (:before IS NULL OR id < :before) ORDER BY id DESC LIMIT :most"
            rows = file.execute(page, asked).fetchall()
            lines = [Line(id, title, self._tags(file, id)) for id, title in rows[:most]]
        return Found(lines, total, lines[-1].id if len(rows) > most else None)

    def count(self, word: str, stop: Callable[[], bool]) -> int:
        """How often a word occurs in all notes."""
        with self.reading(stop) as file:
            rows = file.execute("SELECT text FROM notes WHERE instr(fold(text), fold(?))", (word,))
            return sum(text.casefold().count(word.casefold()) for (text,) in rows)

    def suggest_numbers(self, typed: str) -> Suggestions:
        """Numbers that begin with what was typed, and those of notes whose title holds it."""
        where = "FROM notes WHERE instr(id, :typed) = 1 OR instr(fold(title), fold(:typed))"
        with self.reading() as file:
            [total] = file.execute(f"SELECT count(*) {where}", {"typed": typed}).fetchone()
            rows = file.execute(f"SELECT id {where} ORDER BY id DESC LIMIT 100", {"typed": typed})
            return Suggestions([str(id) for (id,) in rows], total=total)

    def suggest_tags(self, typed: str) -> list[str]:
        with self.reading() as file:
            asked = "SELECT tag FROM tags WHERE instr(tag, fold(?)) = 1 GROUP BY tag ORDER BY count(*) DESC LIMIT 1000"
            return [tag for (tag,) in file.execute(asked, (typed,))]

    def _check(self, file: sqlite3.Connection, id: int, version: int | None) -> None:
        note = self._known(file, id)
        if version is not None and note.version != version:
            raise ToolError(f"Note {id} was changed meanwhile: it is version {note.version} now. Read it again first")

    def _known(self, file: sqlite3.Connection, id: Any) -> Note:
        note = self._note(file, id)
        if note is None:
            raise ToolError(f"There is no note {id}; search_notes tells the numbers")
        return note

    def _note(self, file: sqlite3.Connection, id: int) -> Note | None:
        row = file.execute("SELECT title, text, version, changed FROM notes WHERE id = ?", (id,)).fetchone()
        if row is None:
            return None
        title, text, version, changed = row
        return Note(id, title, text, self._tags(file, id), version, changed)

    def _tags(self, file: sqlite3.Connection, id: int) -> list[str]:
        return [tag for (tag,) in file.execute("SELECT tag FROM tags WHERE note = ? ORDER BY tag", (id,))]

    def _tag(self, file: sqlite3.Connection, id: int | None, tags: list[str]) -> None:
        file.executemany("INSERT OR IGNORE INTO tags VALUES (?, ?)", [(id, tag) for tag in tags])


def _in_words(error: sqlite3.OperationalError) -> Exception:
    """What a model can act on; anything else is a bug, and told by reference."""
    kind = error.sqlite_errorcode & 0xFF  # without the finer reasons
    if kind == sqlite3.SQLITE_BUSY:
        return ToolError(f"Somebody else has been writing to the notes for {LOCK_SECONDS:g} seconds; try again")
    if kind == sqlite3.SQLITE_FULL:
        return ToolError("There is no room for more; delete some notes first")
    return error


def one_line(value: str | None, what: str) -> str | None:
    """What people read in lists: no line breaks, nothing that cannot be seen, no blanks around it."""
    plain = " ".join(value.split()) if value is not None else None
    if plain is not None and (not plain or not plain.isprintable()):
        raise ToolError(f"The {what} is one line that can be read, without control characters")
    return plain


def labels(tags: list[str] | None) -> list[str] | None:
    return None if tags is None else [(one_line(tag, "tag") or "").casefold() for tag in tags]


# --- the server ------------------------------------------------------------------------------------

server = Server(
    "notes",
    version="1.0",
    instructions="Write down what should not be forgotten. Search before you add: it may be there already.",
    page_size=50,
)
listed: dict[int, str] = {}
"""Which notes are in the list of resources, and by which title."""
listing = threading.Lock()


@server.app_lifespan
async def opened() -> AsyncIterator[Store]:
    """The file, as long as the server is served."""
    with contextlib.ExitStack() as end:
        path = os.environ.get("NOTES_DB")
        if not path:
            folder = end.enter_context(tempfile.TemporaryDirectory(prefix="notes-"))
            path = str(Path(folder, "notes.sqlite"))
            print(f"notes: NOTES_DB names no file, so the notes go with this process ({path})", file=sys.stderr)
        store = Store(path)
        refresh(store)
        yield store
        with listing:
            for id in [*listed]:
                unlist(id)


def refresh(store: Store) -> None:
    """Bring the list of resources up to date: whoever listens hears of it."""
    with listing:
        wanted = {line.id: line.title for line in store.search("", None, None, MOST_LISTED).notes}
        for id in [id for id, title in listed.items() if wanted.get(id) != title]:
            unlist(id)
        for id in wanted.keys() - listed.keys():
            listed[id] = wanted[id]
            read = functools.partial(note, id=id)
            facts = {"name": f"note-{id}", "title": wanted[id], "description": f"Note {id}"}
            server.add_resource(f"notes://{id}", read, mime_type="text/markdown", **facts)


def unlist(id: int) -> None:
    server.remove_resource(f"notes://{id}")
    del listed[id]


def changed(store: Store, id: int) -> None:
    """Tell whoever watches that note or the index, and those who keep the list."""
    refresh(store)
    server.resource_changed(f"notes://{id}")
    server.resource_changed("notes://index")


# --- tools: plain functions, which run in threads and may wait for the file -------------------------


@server.tool(title="Add a note", annotations=ToolAnnotations(read_only_hint=False, destructive_hint=False))
def add_note(title: Title, text: Text, ctx: Context, tags: Tags = []) -> Note:  # noqa: B006 - never changed
    """Keep a new note."""
    kept = ctx.app.add(one_line(title, "title"), text, labels(tags))
    changed(ctx.app, kept.id)
    return kept


@server.tool(title="Search notes", annotations=ToolAnnotations(read_only_hint=True), timeout=20)
def search_notes(
    ctx: Context,
    words: Annotated[str, msgspec.Meta(max_length=200)] = "",
    tag: Tag | None = None,
    before: Number | None = None,
    most: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20,
) -> Found:
    """Find notes by a part of their title or text, upper and lower case alike; the newest first.

    Args:
        words: What to look for; nothing finds all notes.
        tag: Only notes with this tag.
        before: For the next page: the `before` of the page you have.
        most: How many notes a page holds.
    """
    return ctx.app.search(words, tag and tag.casefold(), before, most, stop=lambda: ctx.cancelled)


@server.tool(title="Count words", annotations=ToolAnnotations(read_only_hint=True), timeout=60)
def count_words(
    words: Annotated[list[Annotated[str, msgspec.Meta(min_length=1, max_length=100)]], msgspec.Meta(max_length=50)],
    ctx: Context,
) -> dict[str, int]:
    """Count how often each word occurs in all notes, and tell how far that is.

    Args:
        words: Each is counted, as a part of longer words too.
    """
    counts: dict[str, int] = {}
    for number, word in enumerate(words, start=1):
        counts[word] = ctx.app.count(word, stop=lambda: ctx.cancelled)
        ctx.progress(number, len(words), f"looked for {word!r}")
    return counts


@server.tool(title="Read a note", annotations=ToolAnnotations(read_only_hint=True), output_schema=Note)
def read_note(id: Number, ctx: Context) -> ToolResult:
    """Give a note, and a link to watch it by."""
    kept = known(ctx.app, id)
    link = ResourceLink(uri=f"notes://{id}", name=f"note-{id}", title=kept.title, mime_type="text/markdown")
    return ToolResult(content=[kept.text, link], structured=kept)


@server.tool(title="Change a note", annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=False))
def update_note(
    id: Number,
    ctx: Context,
    title: Title | None = None,
    text: Text | None = None,
    tags: Tags | None = None,
    version: int | None = None,
) -> Note:
    """Change what is given of a note, and leave the rest.

    Args:
        version: The version you have read. If the note was changed since then, nothing happens.
    """
    kept = ctx.app.update(id, version, one_line(title, "title"), text, labels(tags))
    changed(ctx.app, id)
    return kept


@server.tool(title="Delete a note", annotations=ToolAnnotations(destructive_hint=True), single_use=True)
def delete_note(id: Number, ctx: Context) -> str:
    """Delete a note for good, if the user says yes."""
    kept = known(ctx.app, id)
    try:
        # The key holds the version: a yes to one text is no yes to another that was written meanwhile.
        answer = ctx.elicit(f"Delete {kept.title!r} ({id})?", Confirmation, key=f"delete-{id}-{kept.version}")
    except CannotAsk:
        raise ToolError(f"Note {id} is kept: deleting needs the user's word, and this client cannot ask") from None
    if not answer.sure:
        raise ToolError(f"Note {id} is kept: the user does not want it deleted")
    ctx.app.delete(id, kept.version)
    changed(ctx.app, id)
    return f"Deleted {kept.title!r}."


def known(store: Store, id: int) -> Note:
    kept = store.note(id)
    if kept is None:
        raise ToolError(f"There is no note {id}; search_notes tells the numbers")
    return kept


# --- resources -------------------------------------------------------------------------------------


def suggest_numbers(typed: str, ctx: Context) -> Suggestions:
    return ctx.app.suggest_numbers(typed)


def suggest_tags(typed: str, ctx: Context) -> list[str]:
    return ctx.app.suggest_tags(typed)


@server.resource("notes://index", mime_type="text/plain", title="All notes")
def index(ctx: Context) -> str:
    """The first hundred notes, newest first, with their numbers."""
    return as_lines(ctx.app.search("", None, None, 100))


@server.resource("notes://index{?tag,before}", mime_type="text/plain", complete={"tag": suggest_tags})
def page(ctx: Context, tag: Tag | None = None, before: Number | None = None) -> str:
    """A hundred notes, of one tag or below a number."""
    return as_lines(ctx.app.search("", tag and tag.casefold(), before, 100))


def as_lines(found: Found) -> str:
    lines = [f"{line.id}: {line.title}" for line in found.notes]
    if found.before is not None:
        lines.append(f"… {found.total} in all; the next ones: ?before={found.before}")
    return "\n".join(lines)


@server.resource("notes://{id}", mime_type="text/markdown", complete={"id": suggest_numbers})
def note(id: Number, ctx: Context) -> str:
    """One note by its number."""
    kept = ctx.app.note(id)
    if kept is None:
        raise ResourceNotFound(f"There is no note {id}", {"uri": f"notes://{id}"})
    return f"# {kept.title}\n\n{kept.text}\n"


# --- prompts ---------------------------------------------------------------------------------------


def numbers_of_tag(typed: str, arguments: dict[str, str], ctx: Context) -> list[str]:
    """Notes with the tag that is chosen already; without one, any."""
    found = ctx.app.search("", arguments.get("tag", "").casefold() or None, None, 100)
    return [str(line.id) for line in found.notes if str(line.id).startswith(typed)]


@server.prompt(title="Summarise", complete={"id": suggest_numbers, "style": ["short", "detailed", "as a list"]})
def summarise(id: str, ctx: Context, style: str = "short") -> list[Any]:
    """Ask for a summary of a note."""
    return [enclosed(ctx.app, id), f"Summarise this note. Style: {style}."]


@server.prompt(title="Relate", complete={"tag": suggest_tags, "id": numbers_of_tag})
def relate(tag: str, id: str, ctx: Context) -> list[Any]:
    """Ask what a note has to do with the others of a tag."""
    titles = as_lines(ctx.app.search("", tag.casefold(), None, 100)) or "none"
    return [enclosed(ctx.app, id), f"How does this note relate to those tagged {tag!r}?\n\n{titles}"]


def enclosed(store: Store, id: str) -> PromptMessage:
    """A note inside of a message, as the resource that it is."""
    kept = store.note(int(id)) if id.isascii() and id.isdigit() and len(id) < 16 else None
    if kept is None:
        raise Refused(f"There is no note {id[:20]!r}", code=-32602)  # an argument that does not fit
    held = ResourceContents(
        uri=f"notes://{kept.id}", mime_type="text/markdown", text=f"# {kept.title}\n\n{kept.text}\n"
    )
    return PromptMessage(role="user", content=EmbeddedResource(resource=held))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        os.environ["NOTES_DB"] = sys.argv[1]
    server.run()
