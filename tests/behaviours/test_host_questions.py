"""What servers may ask of a host, and what the person in front of it sees, decides and keeps to themselves."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager

import pytest

from interlock import CannotAsk, Context, Declined, Host, Policy, Seat, Server
from interlock.host.callbacks.sampling import SamplingBounds
from interlock.host.gate.audit import MemoryAudit
from interlock.host.models.model import ModelFacts
from interlock.host.models.scripted import ScriptedModel
from interlock.host.user import Leave, ScriptedUser
from interlock.server.execution.rate_limits import Rate
from interlock.wire.errors import InterlockError
from support.chatting import said
from support.giving import SINCE_2025_06, SINCE_2025_11
from support.typing_person import at_terminal
from support.wire_peer import ALL, MODERN

HANDSHAKES = tuple(revision for revision in ALL if revision not in MODERN)
RULES = Policy(defaults={"definitions": "allow", "tool": "allow"})
FORM = {"type": "object", "properties": {"seat": {"type": "string", "default": "7A"}}, "required": ["seat"]}
over_all = pytest.mark.parametrize("revision", ALL)
over_handshakes = pytest.mark.parametrize("revision", HANDSHAKES)
over_forms = pytest.mark.parametrize("revision", SINCE_2025_06)
over_pages = pytest.mark.parametrize("revision", SINCE_2025_11)


def asking() -> Server:
    """A server with one tool for each question."""
    server = Server("the name it gives itself")

    @server.tool
    async def sample(ctx: Context, text: str = "Sum up.", options: dict | None = None) -> str:
        try:
            found = await ctx.sample(text, **{"max_tokens": 100, **(options or {})})
        except InterlockError as error:
            return f"error {getattr(error, 'code', None)}: {error}"
        return f"{found.model}: {found.text}"

    @server.tool
    async def form(ctx: Context, message: str = "Which seat?") -> str:
        try:
            return str(await ctx.elicit(message, FORM))
        except Declined as declined:
            return str(declined)

    @server.tool
    async def page(ctx: Context, url: str = "https://bank.example/pay?id=1") -> str:
        try:
            return f"agreed: {await ctx.elicit_url('Pay here.', url)}"
        except Declined as declined:
            return str(declined)

    @server.tool
    async def folders(ctx: Context) -> str:
        try:
            return " ".join(root.uri for root in await ctx.roots())
        except CannotAsk:
            return "cannot ask"

    return server


@asynccontextmanager
async def hosting(user, revision, **more):
    seat = Seat(asking(), revision=revision)
    async with Host({"bookings": seat}, policy=more.pop("policy", RULES), user=user, **more) as host:

        async def call(tool, **arguments):
            return (await host.call_tool(f"bookings__{tool}", arguments)).text

        host.said = call
        yield host


def browser():
    """What was opened, and an opener that opens nothing else."""
    opened = []

    async def opener(url):
        opened.append(url)
        return True

    return opened, opener


def model(name="scripted", **facts):
    return ScriptedModel(otherwise=f"says {name}", facts=ModelFacts(name=name, **facts))


# --- sampling ---


@pytest.mark.requirement("PRIN-05", "SAMP-02", "SAMP-26", "SAMP-30", "SAMP-001", "SAMP-017")
@over_all
async def test_nothing_is_sampled_and_nothing_handed_over_without_the_user(revision):
    user, asked = ScriptedUser(), model()
    async with hosting(user, revision, models=[asked]) as host:
        refused = await _failure(host.said("sample"), revision)
        assert "rejected" in refused and asked.requests == [], "without a yes no model is asked"
        user.answers |= {"review_sampling": True}
        refused = await _failure(host.said("sample"), revision)
        assert "rejected" in refused and len(asked.requests) == 1, "what it said is not handed over without another"
        user.answers |= {"review_answer": True}
        assert await host.said("sample") == "scripted: says scripted"
    shown = [(method, server) for method, (server, *_) in user.seen]
    assert shown[-2:] == [("review_sampling", "bookings"), ("review_answer", "bookings")]


async def _failure(call, revision):
    """A question that failed ends the call in the newest revision, which has no other way to say so."""
    if revision not in MODERN:
        return await call
    with pytest.raises(InterlockError) as failed:
        await call
    return str(failed.value)


@pytest.mark.requirement("SAMP-18")
@over_handshakes
async def test_a_no_of_the_user_is_told_as_one(revision):
    async with hosting(ScriptedUser(), revision, models=[model()]) as host:
        assert await host.said("sample") == "error -1: User rejected sampling request"


@pytest.mark.requirement("PRIN-05", "SAMP-04", "SAMP-05", "SAMP-001")
@over_all
async def test_request_and_answer_can_be_seen_and_changed(revision):
    def edited(server, request):
        return {**request, "messages": [{"role": "user", "content": {"type": "text", "text": "Say nothing of me."}}]}

    def without_secret(server, request, answer):
        return {**answer, "content": {"type": "text", "text": "nothing"}}

    user, asked = ScriptedUser(review_sampling=edited, review_answer=without_secret), model()
    async with hosting(user, revision, models=[asked]) as host:
        assert await host.said("sample", text="Tell me all.") == "scripted: nothing"
    assert "Say nothing of me." in str(asked.requests[0].messages) and "Tell me all" not in str(asked.requests)
    assert "Tell me all." in str(user.seen[0][1]) and "says scripted" in str(user.seen[1][1])


@pytest.mark.requirement("SAMP-03", "SAMP-30", "SAMP-001")
async def test_a_terminal_shows_request_and_answer_whole_and_asks_about_each():
    user, screen, typist = at_terminal("y", "y")
    async with hosting(user, HANDSHAKES[-1], models=[model()]) as host:
        answer = await host.said("sample", text="Sum\x1b[2J up.", options={"system_prompt": "Be brief."})
    assert answer == "scripted: says scripted"
    text = screen.getvalue()
    for shown in ("'bookings' asks a model of yours", "Be brief.", "at most 100 tokens", "'scripted' answered"):
        assert shown in text
    assert "\x1b[2J" not in text and "up." in text and len(typist.asked) == 2


@pytest.mark.requirement("SAMP-21", "SAMP-22", "SAMP-23", "SAMP-24", "SAMP-28", "SAMP-015", "SAMP-016", "SAMP-017")
@pytest.mark.parametrize(
    ("preferences", "chosen"),
    [
        ({"hints": [{"name": "sonnet"}, {"name": "haiku"}]}, "large-sonnet"),
        ({"hints": [{"name": "nobody"}, {"name": "haiku"}]}, "small-haiku"),
        ({"hints": [{"name": "haiku"}], "intelligencePriority": 1.0}, "small-haiku"),
        ({"hints": [{"name": "l"}], "costPriority": 1.0}, "small-haiku"),
        ({"intelligencePriority": 1.0}, "large-sonnet"),
        ({}, "small-haiku"),
    ],
    ids=str,
)
async def test_hints_choose_the_model_in_their_order_and_before_numbers(preferences, chosen):
    user = ScriptedUser(review_sampling=True, review_answer=True)
    models = [model("small-haiku", cheapness=1.0), model("large-sonnet", intelligence=1.0)]
    async with hosting(user, HANDSHAKES[-1], models=models) as host:
        answer = await host.said("sample", options={"model_preferences": preferences})
    assert answer.startswith(f"{chosen}:")


@pytest.mark.requirement("SAMP-33")
async def test_priorities_outside_of_their_range_are_refused():
    user = ScriptedUser(review_sampling=True, review_answer=True)
    async with hosting(user, HANDSHAKES[-1], models=[model()]) as host:
        sampler = host.questions.for_server("bookings")["sample"]
        params = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 1}
        for wrong in ({"costPriority": 1.5}, {"speedPriority": -1}, {"intelligencePriority": True}):
            with pytest.raises(InterlockError, match="between 0 and 1"):
                await sampler({**params, "modelPreferences": wrong})
    assert user.seen == []


@pytest.mark.requirement("SAMP-014", "SAMP-25", "SAMP-013")
@over_all
async def test_a_model_is_asked_for_no_more_tokens_than_the_server_and_the_host_want(revision):
    user, asked = ScriptedUser(review_sampling=True, review_answer=True), model()
    async with hosting(user, revision, models=[asked], sampling=SamplingBounds(tokens=50)) as host:
        for wanted in (10, 10_000):
            await host.said("sample", options={"max_tokens": wanted})
    assert [request.max_tokens for request in asked.requests] == [10, 50]


@pytest.mark.requirement("SAMP-29", "SAMP-017")
@over_handshakes
async def test_a_server_that_samples_all_the_time_is_slowed_down(revision):
    user, asked = ScriptedUser(review_sampling=True, review_answer=True), model()
    bounds = SamplingBounds(requests=Rate(0.001, 3))
    async with hosting(user, revision, models=[asked], sampling=bounds) as host:
        answers = [await host.said("sample") for _ in range(5)]
    assert len(asked.requests) == 3 and ["Too many" in each for each in answers] == [False] * 3 + [True] * 2


@pytest.mark.requirement("SCH-21", "SAMP-14", "SAMP-010", "SAMP-32", "SAMP-018")
async def test_the_choice_of_tools_binds_the_model():
    """A model that is made to use a tool and does not is no answer; one that may not use any is told so."""
    user = ScriptedUser(review_sampling=True, review_answer=True)
    asked = ScriptedModel(
        ["no tool", {"add": {"a": 1}}, "none", "free"], facts=ModelFacts(name="m", can=frozenset({"tools"}))
    )
    async with hosting(user, HANDSHAKES[-1], models=[asked], sampling=SamplingBounds(requests=Rate(0.001, 4))) as host:
        sample = host.questions.for_server("bookings")["sample"]
        params = {
            "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}],
            "maxTokens": 9,
            "tools": [{"name": "add", "inputSchema": {"type": "object"}}],
        }
        with pytest.raises(InterlockError, match="auto, required, none"):
            await sample({**params, "toolChoice": {"mode": "sometimes"}})
        with pytest.raises(InterlockError, match="used no tool"):
            await sample({**params, "toolChoice": {"mode": "required"}})
        assert (await sample({**params, "toolChoice": {"mode": "required"}}))["stopReason"] == "toolUse"
        await sample({**params, "toolChoice": {"mode": "none"}})
        await sample(params)
        with pytest.raises(InterlockError, match="Too many"):
            await sample(params)  # a loop of tools is as long as a server may ask
    assert [request.tool_choice for request in asked.requests] == ["required", "required", "none", "auto"]


@pytest.mark.requirement("SAMP-012")
@over_all
async def test_one_request_knows_nothing_of_the_one_before(revision):
    user, asked = ScriptedUser(review_sampling=True, review_answer=True), model()
    async with hosting(user, revision, models=[asked]) as host:
        for text in ("the first", "the second"):
            await host.said("sample", text=text)
    assert len(asked.requests[1].messages) == 1 and "the first" not in str(asked.requests[1])


@pytest.mark.requirement("SAMP-25", "SAMP-013", "PRIN-14")
async def test_context_is_what_the_user_allows_for_that_server_and_is_reviewed():
    """Nothing of the conversation goes along by itself, whatever a server wants included."""
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 9}
    wants = {**params, "includeContext": "allServers"}

    async def allowed(server, which):
        return f"what {server} may see of {which}"

    for context, seen in ((None, None), (allowed, "what bookings may see of allServers")):
        user, asked = ScriptedUser(review_sampling=True, review_answer=True), model()
        async with hosting(user, HANDSHAKES[-1], models=[asked], context=context) as host:
            await host.questions.for_server("bookings")["sample"](wants)
        assert asked.requests[0].system == seen and user.seen[0][1][1].get("systemPrompt") == seen


# --- forms ---


@pytest.mark.requirement("ELIC-04", "ELIC-05", "ELIC-46", "ELIC-48", "ELICIT-003", "ELICIT-004", "ELICIT-029")
@over_forms
async def test_a_form_names_the_server_as_the_user_does_and_can_be_declined_and_cancelled(revision):
    user = ScriptedUser()
    async with hosting(user, revision) as host:
        for action, answer in (("decline", "declined"), ("cancel", "dismissed")):
            user.answers["fill"] = {"action": action}
            assert answer in (await host.said("form")).lower()
        user.answers["fill"] = {"action": "accept", "content": {"seat": "9C"}}
        assert await host.said("form") == "{'seat': '9C'}"
    assert [shown[:2] for _, shown in user.seen] == [("bookings", "Which seat?")] * 3


@pytest.mark.requirement("ELIC-04", "ELIC-05", "ELIC-06", "ELIC-48", "ELICIT-003", "ELICIT-004", "ELICIT-005")
@over_forms
async def test_at_a_terminal_answers_are_looked_at_once_more_and_changed_before_they_are_sent(revision):
    user, screen, typist = at_terminal("1B", "c", "2C", "y")
    async with hosting(user, revision) as host:
        assert await host.said("form") == "{'seat': '2C'}"
    text = screen.getvalue()
    assert "The server 'bookings' asks you:" in typist.asked
    assert "the name it gives itself" not in text + "".join(typist.asked)
    assert text.count("Send this to the server 'bookings'?") == 2
    user, _, _ = at_terminal("1B", "n")
    async with hosting(user, revision) as host:
        assert "declined" in (await host.said("form")).lower()


@pytest.mark.requirement("ELIC-17", "ELICIT-014")
@over_forms
async def test_defaults_are_there_and_enter_takes_them(revision):
    user, screen, typist = at_terminal("", "y")
    async with hosting(user, revision) as host:
        assert await host.said("form") == "{'seat': '7A'}"
    assert any("[7A]" in asked for asked in typist.asked) and '"7A"' in screen.getvalue(), (
        "what will be sent is shown, defaults too"
    )


@pytest.mark.requirement("ELIC-45", "ELICIT-029")
@over_forms
async def test_a_rule_of_the_user_answers_before_anybody_is_asked(revision):
    rules = Policy(defaults={"definitions": "allow", "tool": "allow", "elicitation": "deny"})
    user = ScriptedUser(fill={"action": "accept", "content": {"seat": "9C"}})
    async with hosting(user, revision, policy=rules) as host:
        assert "declined" in (await host.said("form")).lower()
    assert user.seen == []


@pytest.mark.requirement("ELIC-47")
async def test_a_server_that_asks_all_the_time_is_slowed_down():
    user = ScriptedUser(fill={"action": "decline"})
    async with hosting(user, HANDSHAKES[-1]) as host:
        form = host.questions.for_server("bookings")["elicit"]
        with pytest.raises(InterlockError, match="Too many questions"):
            for _ in range(200):
                await form({"message": "?", "requestedSchema": FORM})
    assert len(user.seen) <= 30


# --- pages ---


@pytest.mark.requirement("ELIC-07", "ELIC-25", "ELIC-54", "ELIC-55", "ELIC-56", "ELIC-58")
@pytest.mark.requirement("ELICIT-006", "ELICIT-034", "ELICIT-035", "ELICIT-036", "ELICIT-038")
@over_pages
async def test_a_page_is_shown_whole_with_its_host_and_opened_only_after_a_yes(revision):
    opened, opener = browser()
    for typed, answer in (("n", "declined"), ("y", "agreed: none")):
        user, screen, _ = at_terminal(typed)
        async with hosting(user, revision, opener=opener) as host:
            assert answer in (await host.said("page")).lower()
        text = screen.getvalue()
        assert "'bookings' wants you to open a page" in text
        assert "https://bank.example/pay?id=1" in text and "at the host bank.example" in text
        assert opened == (["https://bank.example/pay?id=1"] if typed == "y" else [])


@pytest.mark.requirement("ELIC-55", "ELICIT-035")
@over_pages
async def test_no_rule_opens_a_page_in_the_place_of_the_user(revision):
    opened, opener = browser()
    rules = Policy(defaults={"definitions": "allow", "tool": "allow", "open_url": "allow"})
    user = ScriptedUser(open_page=False)
    async with hosting(user, revision, policy=rules, opener=opener) as host:
        assert "declined" in (await host.said("page")).lower() and opened == []
        user.answers["open_page"] = True
        assert "agreed" in await host.said("page")
    assert len(opened) == 1 and len(user.seen) == 2


@pytest.mark.requirement("ELIC-54", "ELICIT-034")
@over_pages
async def test_nothing_is_fetched_from_a_page(revision):
    visits = []

    async def visited(reader, writer):
        visits.append(await reader.read(1))
        writer.close()

    listener = await asyncio.start_server(visited, "127.0.0.1", 0)
    async with listener, hosting(ScriptedUser(open_page=True), revision, opener=browser()[1]) as host:
        port = listener.sockets[0].getsockname()[1]
        assert "agreed" in await host.said("page", url=f"http://127.0.0.1:{port}/")
        assert visits == []


@pytest.mark.requirement("ELIC-57", "ELICIT-037")
@over_pages
async def test_a_page_is_opened_in_the_browser_of_the_system(revision, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    async with hosting(ScriptedUser(open_page=True), revision) as host:
        assert "agreed" in await host.said("page")
    assert opened == ["https://bank.example/pay?id=1"]


@pytest.mark.requirement("ELIC-59", "ELIC-60", "ELICIT-038", "ELICIT-039")
@over_pages
async def test_a_suspicious_page_is_warned_of_and_nothing_else_can_be_clicked(revision):
    """What a terminal makes clickable is an escape sequence, and none of a server's gets there."""
    user, screen, typist = at_terminal("n", "1", "n")
    async with hosting(user, revision) as host:
        await host.said("page", url="https://xn--bnk-0na.example/pay")
        await host.said("form", message="See \x1b]8;;https://evil.example\x1b\\here\x1b]8;;\x1b\\")
    text = screen.getvalue() + "".join(typist.asked)
    assert "careful" in text and "xn--bnk-0na.example" in text and "\x1b" not in text


@pytest.mark.requirement("ELIC-24", "ELIC-29", "ELIC-31", "ELICIT-017")
async def test_the_end_of_a_page_is_told_once_and_nothing_waits_for_it():
    """The id means nothing but itself; the call can be made again, or be left, whether the end is told or not."""
    user = ScriptedUser(open_page=True)
    async with hosting(user, HANDSHAKES[-1], opener=browser()[1]) as host:
        callbacks = host.questions.for_server("bookings")
        params = {"mode": "url", "message": "Pay", "url": "https://bank.example/", "elicitationId": "../?\x00"}
        assert await callbacks["elicit_url"](params) == {"action": "accept"}
        for id in ("bogus", "../?\x00", "../?\x00"):
            callbacks["on_notification"]("notifications/elicitation/complete", {"elicitationId": id})
        assert len([text for text in user.told("asked") if "this is done" in text]) == 1
        assert [await host.said("page") for _ in range(2)] == ["agreed: None"] * 2


# --- roots ---


@pytest.mark.requirement("ROOTS-09", "ROOTS-14", "ROOTS-003", "ROOTS-005")
@over_all
async def test_a_server_is_told_of_folders_only_when_the_user_agrees_for_that_server(revision, tmp_path):
    user, book = ScriptedUser(), MemoryAudit()
    async with hosting(user, revision, roots=[tmp_path], audit=book) as host:
        assert await host.said("folders") == ""
        user.answers["allow"] = True
        assert await host.said("folders") == tmp_path.resolve().as_uri()
    assert {ask.deed.server for ask in user.asks} == {"bookings"} and str(tmp_path) in user.asks[0].shown
    decided = [entry.decision for entry in book.entries if entry.kind == "roots" and entry.step == "decision"]
    assert decided == ["deny", "allow"]
    async with hosting(user, revision, roots={"another": [tmp_path]}) as host:
        assert await host.said("folders") == ""  # it may ask, and is told of none


@pytest.mark.requirement("ROOTS-07", "ROOTS-10", "ROOTS-16", "ROOTS-003", "ROOTS-005")
@over_all
async def test_only_what_is_there_and_where_it_was_is_told(revision, tmp_path):
    kept, gone, turned, elsewhere = (tmp_path / name for name in ("kept", "gone", "turned", "elsewhere"))
    for folder in (kept, gone, turned, elsewhere):
        folder.mkdir()
    async with hosting(ScriptedUser(True), revision, roots=[kept, gone, turned]) as host:
        assert len((await host.said("folders")).split()) == 3
        gone.rmdir()
        turned.rmdir()
        turned.symlink_to(elsewhere)
        assert await host.said("folders") == kept.resolve().as_uri()


@pytest.mark.requirement("ROOTS-07", "ROOTS-16", "ROOTS-003")
def test_a_folder_that_cannot_be_read_is_no_root(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InterlockError, match="cannot be read"):
        Host({"bookings": asking()}, roots=[tmp_path])


@pytest.mark.requirement("ROOTS-10", "ROOTS-17", "ROOTS-005")
@over_handshakes
async def test_a_server_is_told_when_one_of_its_roots_vanishes(revision, tmp_path):
    server, told = asking(), asyncio.Event()

    @server.notification("notifications/roots/list_changed")
    async def changed():
        told.set()

    folder = tmp_path / "work"
    folder.mkdir()
    seat = Seat(server, revision=revision)
    async with Host({"s": seat}, policy=RULES, user=ScriptedUser(True), roots=[folder]) as host:
        assert (await host.call_tool("s__folders")).text == folder.resolve().as_uri()
        folder.rmdir()
        await host.roots.look()  # what its watch does every few seconds
        await asyncio.wait_for(told.wait(), 20)
        assert (await host.call_tool("s__folders")).text == ""


@pytest.mark.requirement("ROOTS-15", "ROOTS-005")
async def test_roots_are_seen_added_and_removed_in_the_chat(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    text = await said("/roots", f"/roots add {other}", f"/roots remove {tmp_path}", roots=[tmp_path])
    assert text.splitlines().count(f"  {tmp_path.resolve()}") == 2
    assert text.splitlines()[-1] == f"  {other.resolve()}"


@pytest.mark.requirement("ROOTS-09", "ROOTS-14")
async def test_leave_can_last_for_these_folders_alone(tmp_path):
    user = ScriptedUser(Leave(granted=True, scope="session"))
    async with hosting(user, HANDSHAKES[-1], roots=[tmp_path]) as host:
        for _ in range(3):
            await host.said("folders")
        assert len(user.asks) == 1
        await host.roots.set([tmp_path.parent])
        await host.said("folders")
        assert len(user.asks) == 2
