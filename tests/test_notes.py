"""examples/notes.py as its users run it: a process, a SQLite file, and clients of every revision."""

from __future__ import annotations

import asyncio
import re
import sqlite3

import pytest

from interlock import Refused
from interlock.wire.errors import PeerClosed
from interop.told import served
from support.examples import Ears, answering, command, connect, loaded, process, refusal, script, watching
from support.wire_peer import ALL, HANDSHAKE, MODERN

every_revision = pytest.mark.parametrize("revision", ALL)
HAVE_STRUCTURED = HAVE_FORMS = ALL[2:]


@pytest.fixture
def database(tmp_path):
    return tmp_path / "notes.sqlite"


@pytest.fixture
def notes(database):
    """Connect to a process of its own, on the file of the test."""
    return lambda revision, **options: connect(process("notes.py", NOTES_DB=database), revision, **options)


def rows(database, statement="SELECT id, title, text FROM notes ORDER BY id"):
    file = sqlite3.connect(database)
    try:
        return file.execute(statement).fetchall()
    finally:
        file.close()


def fill(database, count):
    """A file with many notes, as the example itself makes it."""
    store = loaded("notes.py").Store(str(database))
    with store.writing() as file:
        file.executemany(
            "INSERT INTO notes (title, text) VALUES (?, ?)", [(f"note {n}", f"text {n}") for n in range(count)]
        )


async def completed(client, ref, argument, value, **known):
    context = {"context": {"arguments": known}} if known else {}
    asked = {"ref": ref, "argument": {"name": argument, "value": value}, **context}
    return (await client.request("completion/complete", asked))["completion"]


# --- keeping and finding ----------------------------------------------------------------------------


@every_revision
async def test_notes_are_kept_changed_and_found_again_by_another_process(notes, database, revision):
    async with notes(revision) as client:
        added = await client.call_tool("add_note", {"title": " Über  Tee ", "text": "Grün", "tags": ["Home", "home"]})
        wanted = {"id": 1, "title": "Über Tee", "text": "Grün", "tags": ["home"], "version": 1}
        if revision in HAVE_STRUCTURED:
            assert added.structured.items() >= wanted.items()
        changed = await client.call_tool("update_note", {"id": 1, "text": "Grün, Schwarz", "version": 1})
        assert '"version":2' in changed.text
        late = await refusal(client.call_tool("update_note", {"id": 1, "text": "lost", "version": 1}))
        assert late == "Note 1 was changed meanwhile: it is version 2 now. Read it again first"
    async with notes(revision) as client:
        found = await client.call_tool("search_notes", {"words": "SCHWARZ", "tag": "HOME"})
        assert found.text == '{"notes":[{"id":1,"title":"Über Tee","tags":["home"]}],"total":1,"before":null}'
        read = await client.call_tool("read_note", {"id": 1})
        assert read.content[0].text == "Grün, Schwarz"
        assert "notes://1" in (read.content[1].uri if revision in HAVE_STRUCTURED else read.content[1].text)
        assert (await refusal(client.call_tool("read_note", {"id": 7}))).startswith("There is no note 7")
    assert rows(database) == [(1, "Über Tee", "Grün, Schwarz")]


@every_revision
async def test_progress_is_told_while_words_are_counted(notes, revision):
    steps = []
    async with notes(revision) as client:
        await client.call_tool("add_note", {"title": "shopping", "text": "Tea, milk, and more tea."})
        counted = await client.call_tool(
            "count_words", {"words": ["tea", "milk"]}, on_progress=lambda *step: steps.append(step)
        )
    assert counted.text == '{"tea":2,"milk":1}'
    assert [step[:2] for step in steps] == [(1, 2), (2, 2)]
    assert revision == ALL[0] or steps[0][2] == "looked for 'tea'"


@every_revision
async def test_many_notes_come_in_pages(notes, database, revision):
    fill(database, 250)
    async with notes(revision) as client:
        first = await client.request("resources/list", {})
        assert len(first["resources"]) == 50 and first["nextCursor"]
        uris = [resource.uri for resource in await client.list_resources()]
        assert set(uris) == {"notes://index", *(f"notes://{id}" for id in range(51, 251))} and len(uris) == 201
        seen, before = [], {}
        while before is not None:
            page = await client.request("tools/call", {"name": "search_notes", "arguments": {"most": 100, **before}})
            text = page["content"][0]["text"]
            seen += [int(id) for id in re.findall(r'"id":(\d+)', text)]
            onward = re.search(r'"before":(\d+)', text)
            before = {"before": int(onward[1])} if onward else None
        assert seen == [*range(250, 0, -1)]
        [index] = await client.read_resource("notes://index?before=101")
        assert index.text.splitlines()[0] == "100: note 99" and len(index.text.splitlines()) == 100
        [old] = await client.read_resource("notes://1")  # not listed, but there
        assert old.text == "# note 0\n\ntext 0\n"


# --- nothing is deleted without the user's word ------------------------------------------------------


@pytest.mark.parametrize("revision", HAVE_FORMS)
async def test_a_note_is_deleted_when_the_user_says_yes(notes, database, revision):
    asked = []

    def yes(params):
        asked.append(params["message"])
        return {"action": "accept", "content": {"sure": True}}

    async with notes(revision, elicit=yes) as client:
        await client.call_tool("add_note", {"title": "old", "text": "x", "tags": ["t"]})
        assert (await client.call_tool("delete_note", {"id": 1})).text == "Deleted 'old'."
        with pytest.raises(Refused) as gone:
            await client.read_resource("notes://1")
        assert gone.value.data == {"uri": "notes://1"}
    assert asked == ["Delete 'old' (1)?"] and rows(database) == [] == rows(database, "SELECT * FROM tags")


@every_revision
async def test_a_note_is_kept_when_the_user_says_no_or_cannot_be_asked(notes, database, revision):
    no = {"declined": {"action": "decline"}, "dismissed": {"action": "cancel"}}
    answers = {**no, "does not want": {"action": "accept", "content": {"sure": False}}}
    for told, answer in answers.items() if revision in HAVE_FORMS else ():
        async with notes(revision, elicit=lambda params, answer=answer: answer) as client:
            await client.call_tool("add_note", {"title": "dear", "text": ""})
            assert told in await refusal(client.call_tool("delete_note", {"id": 1}))
    async with notes(revision) as client:
        await client.call_tool("add_note", {"title": "dear", "text": ""})
        mute = await client.call_tool("delete_note", {"id": 1})
    assert (mute.is_error, mute.text) == (
        True,
        "Note 1 is kept: deleting needs the user's word, and this client cannot ask",
    )
    assert rows(database)[0] == (1, "dear", "")


@pytest.mark.parametrize("revision", HAVE_FORMS)
async def test_a_yes_to_one_text_is_no_yes_to_another(notes, database, revision):
    """The note is changed by somebody else while the user looks at the question."""
    asked = []

    async def slow_yes(params):
        asked.append(params["message"])
        if len(asked) == 1:
            async with notes(revision) as other:
                await other.call_tool("update_note", {"id": 1, "text": "precious"})
        return {"action": "accept", "content": {"sure": True}}

    async with notes(revision, elicit=slow_yes) as client:
        await client.call_tool("add_note", {"title": "rubbish", "text": ""})
        result = await client.call_tool("delete_note", {"id": 1})
    if revision in MODERN:  # the function ran again with the answer, and asked about what it found
        assert asked == ["Delete 'rubbish' (1)?"] * 2 and rows(database) == []
    else:
        assert result.is_error and "changed meanwhile" in result.text and rows(database)[0][2] == "precious"


# --- watching ---------------------------------------------------------------------------------------


@every_revision
async def test_who_watches_a_note_hears_of_its_changes(notes, revision):
    ears = Ears()
    async with notes(revision, on_notification=ears) as client:
        await client.call_tool("add_note", {"title": "one", "text": ""})
        async with watching(client, ears, "notes://1", "notes://index", lists=("resourcesListChanged",)):
            await client.call_tool("update_note", {"id": 1, "text": "new"})
            await ears.until("notifications/resources/updated", uri="notes://1")
            await client.call_tool("add_note", {"title": "two", "text": ""})
            await ears.until("notifications/resources/updated", uri="notes://index")
            await client.call_tool("update_note", {"id": 2, "title": "three"})
            await ears.until("notifications/resources/list_changed")
        titles = [resource.title for resource in await client.list_resources()]
    assert revision not in HAVE_STRUCTURED or set(titles) == {"All notes", "one", "three"}


async def test_what_one_client_does_another_hears_over_http(database, tmp_path):
    ears = Ears()
    with served([*command("notes.py", NOTES_DB=database), "--http", "--port", "0"], tmp_path / "said") as address:
        async with connect(address, None, on_notification=ears) as watcher, connect(address, None) as writer:
            async with watching(watcher, ears, "notes://index", "notes://1"):
                await asyncio.gather(
                    *(writer.call_tool("add_note", {"title": f"w{n}", "text": ""}) for n in range(20)),
                    *(watcher.call_tool("add_note", {"title": f"r{n}", "text": ""}) for n in range(20)),
                )
                await ears.until("notifications/resources/updated", uri="notes://index")
            [index] = await watcher.read_resource("notes://index")
    titles = {line.partition(": ")[2] for line in index.text.splitlines()}
    assert titles == {f"{who}{n}" for who in "wr" for n in range(20)} and len(rows(database)) == 40


@pytest.mark.parametrize("revision", [HANDSHAKE[0], MODERN[0]])
async def test_two_processes_write_to_one_file_at_once(notes, database, revision):
    async with notes(revision) as one, notes(revision) as two:
        added = await asyncio.gather(
            *(
                client.call_tool("add_note", {"title": f"{name}{n}", "text": "x", "tags": ["t", name]})
                for n in range(30)
                for name, client in (("a", one), ("b", two))
            )
        )
        assert not any(result.is_error for result in added)
        found = await one.call_tool("search_notes", {"tag": "b", "most": 100})
    assert '"total":30' in found.text
    assert {title for _, title, _ in rows(database)} == {f"{name}{n}" for name in "ab" for n in range(30)}
    assert rows(database, "SELECT count(*) FROM tags") == [(120,)]


# --- suggestions and prompts ------------------------------------------------------------------------


@every_revision
async def test_numbers_and_tags_are_suggested(notes, database, revision):
    async with notes(revision) as client:
        for title, tag in (("shopping", "home"), ("taxes", "work"), ("cleaning", "home")):
            await client.call_tool("add_note", {"title": title, "text": "", "tags": [tag]})
        template = {"type": "ref/resource", "uri": "notes://{id}"}
        prompt = {"type": "ref/prompt", "name": "relate"}
        assert (await completed(client, template, "id", "2"))["values"] == ["2"]
        assert (await completed(client, template, "id", "CLEAN"))["values"] == ["3"]
        assert (await completed(client, template, "id", ""))["total"] == 3
        assert (await completed(client, prompt, "tag", "H"))["values"] == ["home"]
        if revision in HAVE_STRUCTURED:  # as old as the context of a completion
            assert (await completed(client, prompt, "id", "", tag="home"))["values"] == ["3", "1"]
        summary = {"type": "ref/prompt", "name": "summarise"}
        assert (await completed(client, summary, "style", "de"))["values"][0] == "detailed"


@every_revision
async def test_prompts_bring_the_note_along(notes, revision):
    async with notes(revision) as client:
        await client.call_tool("add_note", {"title": "shopping", "text": "Tea", "tags": ["home"]})
        held, words = (await client.get_prompt("summarise", {"id": "1", "style": "detailed"})).messages
        assert held.content.resource.text == "# shopping\n\nTea\n" and held.content.resource.uri == "notes://1"
        assert words.content.text == "Summarise this note. Style: detailed."
        _, words = (await client.get_prompt("relate", {"id": "1", "tag": "HOME"})).messages
        assert words.content.text.endswith("1: shopping")
        for id in ("2", "0", "-1", "x", "1 OR 1=1", "9" * 400, "¹"):
            with pytest.raises(Refused, match="There is no note") as wrong:
                await client.get_prompt("summarise", {"id": id})
            assert wrong.value.code == -32602


# --- hostile words ----------------------------------------------------------------------------------

HOSTILE = [
    ("add_note", {"title": "", "text": ""}),
    ("add_note", {"title": " \n ", "text": ""}),
    ("add_note", {"title": "a\x00b", "text": ""}),
    ("add_note", {"title": "a\x1b[31m", "text": ""}),
    ("add_note", {"title": "t" * 201, "text": ""}),
    ("add_note", {"title": "t", "text": "x" * 20_001}),
    ("add_note", {"title": "t", "text": "", "tags": ["x"] * 21}),
    ("add_note", {"title": "t", "text": "", "tags": ["ok", "\x07"]}),
    ("add_note", {"title": "t", "text": "", "tags": "home'); DROP TABLE notes; --"}),
    ("add_note", {"title": ["t"], "text": {}}),
    ("read_note", {"id": 0}),
    ("read_note", {"id": -1}),
    ("read_note", {"id": 2**63}),
    ("read_note", {"id": 10**400}),
    ("read_note", {"id": 1.5}),
    ("read_note", {"id": "1 OR 1=1"}),
    ("read_note", {}),
    ("update_note", {"id": 1, "title": "\u202eevil\x9f"}),
    ("update_note", {"id": 1, "version": "x"}),
    ("update_note", {"id": 1, "version": 2**70}),
    ("search_notes", {"most": 0}),
    ("search_notes", {"most": 10**9}),
    ("search_notes", {"before": "x; DELETE FROM notes"}),
    ("search_notes", {"words": "x" * 201}),
    ("count_words", {"words": [""]}),
    ("count_words", {"words": ["x"] * 51}),
    ("delete_note", {"id": "*"}),
]


@pytest.mark.parametrize("revision", [ALL[0], MODERN[0]])
async def test_hostile_arguments_are_refused_in_words_and_change_nothing(notes, database, revision):
    async with notes(revision, elicit=answering(sure=True)) as client:
        await client.call_tool("add_note", {"title": "only", "text": "one"})
        for tool, arguments in HOSTILE:
            told = await refusal(client.call_tool(tool, arguments))
            assert told and "reference" not in told, (tool, arguments, told)
        for uri in (
            "notes://0",
            "notes://-1",
            f"notes://{10**40}",
            "notes://1%00",
            "notes://..%2F1",
            "notes://index?x=1",
        ):
            with pytest.raises(Refused, match=r"(?i)not found|no note|unknown"):
                await client.read_resource(uri)
    assert rows(database) == [(1, "only", "one")]


@pytest.mark.parametrize("words", ["'; DROP TABLE notes; --", '" OR 1=1', "%", "_", "\\", "\x00", "💥", ")"])
async def test_words_are_words_whatever_they_look_like(notes, database, words):
    async with notes(None) as client:
        await client.call_tool("add_note", {"title": "plain", "text": "nothing of the kind"})
        await client.call_tool("add_note", {"title": "holds it", "text": f"<{words}>"})
        found = await client.call_tool("search_notes", {"words": words})
        assert [line["id"] for line in found.structured["notes"]] == [2]
        by_tag = await client.call_tool("search_notes", {"tag": words})
        assert by_tag.structured["total"] == 0
        assert (await client.call_tool("count_words", {"words": [words]})).structured == {words: 1}
    assert rows(database)[1][2] == f"<{words}>"


# --- bounds and beginnings --------------------------------------------------------------------------


async def test_beyond_the_bounds_nothing_is_written_and_the_model_is_told(database, monkeypatch):
    module = loaded("notes.py")
    monkeypatch.setenv("NOTES_DB", str(database))
    monkeypatch.setattr(module, "MOST_NOTES", 2)
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.05)
    async with connect(module.server, None) as client:
        for _ in range(2):
            assert not (await client.call_tool("add_note", {"title": "t", "text": ""})).is_error
        assert "which is the most" in await refusal(client.call_tool("add_note", {"title": "t", "text": ""}))
        holder = sqlite3.connect(database, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        told = await refusal(client.call_tool("update_note", {"id": 1, "text": "x"}))
        holder.close()
        assert told == "Somebody else has been writing to the notes for 0.05 seconds; try again"
        monkeypatch.setattr(module, "MOST_PAGES", 8)
        full = await refusal(client.call_tool("update_note", {"id": 1, "text": "x" * 20_000}))
        assert full == "There is no room for more; delete some notes first"
    assert [text for *_, text in rows(database)] == ["", ""]
    assert module.listed == {}


async def test_a_file_of_something_else_is_left_alone(notes, database):
    file = sqlite3.connect(database)
    file.execute("CREATE TABLE customers (name TEXT)")
    file.close()
    before = database.read_bytes()
    with pytest.raises(PeerClosed, match="is a database of something else"):
        async with notes(None):
            pass
    assert database.read_bytes() == before
    database.write_text("no database at all, but long enough to be looked at" * 20)
    with pytest.raises(PeerClosed, match="not a database"):
        async with notes(None):
            pass


async def test_the_file_may_be_an_argument(database):
    async with connect(script("notes.py", database), None) as client:
        await client.call_tool("add_note", {"title": "given", "text": ""})
    assert rows(database) == [(1, "given", "")]


async def test_without_a_file_the_notes_are_kept_for_a_while(tmp_path):
    with served([*command("notes.py", TMPDIR=tmp_path), "--http", "--port", "0"], tmp_path / "said") as address:
        async with connect(address, None) as client:
            await client.call_tool("add_note", {"title": "passing", "text": ""})
        [folder] = tmp_path.glob("notes-*")
        assert rows(folder / "notes.sqlite") == [(1, "passing", "")]
    assert "NOTES_DB names no file" in (tmp_path / "said").read_text()
    assert not folder.exists()
