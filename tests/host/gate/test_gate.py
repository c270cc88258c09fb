"""The choke point: pins, policy, consent, send, cap, audit, in this order and for everything."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server
from interlock.auth.client.token_storage import MemoryRecords
from interlock.client.results import CallResult
from interlock.host.gate.action import Deed, Denied
from interlock.host.gate.audit import AuditFailed, FileAudit, MemoryAudit
from interlock.host.gate.gate import Gate
from interlock.host.gate.pins import Definitions, Item
from interlock.host.gate.policy import Policy, Rule
from interlock.host.gate.result_cap import Cap
from interlock.host.launch.launch import Launch
from interlock.host.user import Ask, Leave, ScriptedUser
from interlock.wire.errors import CallTimeout, ConnectionLost, StoreError
from interlock.wire.exchange import LOCAL, Principal
from interlock.wire.types.content import TextContent
from interlock.wire.types.tools import Tool
from support.properties import many

SEND = Deed("tool", "mail", "send", {"to": "ada"})
OFFER = Definitions(tools=[Tool(name="send", input_schema={}, description="Sends a mail.")])


async def a_gate(user: ScriptedUser | None = None, *rules: Rule, **more) -> Gate:
    """One at which the server `mail` is approved already."""
    user = user if user is not None else ScriptedUser(True)
    gate = Gate(
        Policy([Rule(decision="allow", kind=("definitions",), name=("first",), id="approved"), *rules]), user, **more
    )
    await gate.admit("mail", OFFER)
    return gate


def story(gate: Gate) -> list[str]:
    assert isinstance(gate.audit, MemoryAudit)
    entries = [entry for entry in gate.audit.entries if entry.kind != "definitions"]
    return [f"{entry.step} {entry.decision or entry.outcome}" for entry in entries]


class Sent:
    """What a server got, and what it answers."""

    def __init__(self, result: object = None) -> None:
        self.result = result if result is not None else CallResult([TextContent(text="sent")])
        self.got: list[object] = []

    async def __call__(self, arguments: object):
        self.got.append(arguments)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


async def test_what_is_allowed_is_sent_and_told():
    gate = await a_gate(None, Rule(decision="allow"))
    send = Sent()
    assert await gate.through(SEND, send) is send.result and send.got == [{"to": "ada"}]
    assert story(gate) == ["decision allow", "outcome done"]
    assert [notice.kind for notice in gate.user.notices] == ["calling", "done"]  # pyright: ignore
    decision, outcome = [entry for entry in gate.audit.entries if entry.kind == "tool"]  # pyright: ignore
    assert decision.call == outcome.call and outcome.bytes == 4 and decision.principal == "interlock local"


async def test_nothing_is_sent_before_the_decision_is_in_the_book():
    gate = await a_gate(None, Rule(decision="allow"))

    async def send(arguments):
        assert story(gate) == ["decision allow"]

    await gate.through(SEND, send)


async def test_nothing_acts_unaudited():
    gate = await a_gate(None, Rule(decision="allow"))

    def full(entry) -> None:
        raise AuditFailed("the disk is full")

    gate.audit.write = full  # pyright: ignore
    send = Sent()
    with pytest.raises(AuditFailed):
        await gate.through(SEND, send)
    assert send.got == []


async def test_a_result_is_not_thrown_away_because_its_line_cannot_be_written():
    gate = await a_gate(None, Rule(decision="allow"))

    async def send(arguments):
        def full(entry) -> None:
            raise AuditFailed("the disk is full")

        gate.audit.write = full  # pyright: ignore
        return CallResult([TextContent(text="sent")])

    assert (await gate.through(SEND, send)).text == "sent"
    assert "was not written down" in gate.user.told("audit")[0]  # pyright: ignore


async def test_the_default_gate_lets_nothing_act():
    gate = Gate()
    send = Sent()
    with pytest.raises(Denied):
        await gate.through(SEND, send)
    with pytest.raises(Denied, match="nobody is there"):
        await gate.through(Deed("resource", "mail", "mail://1"), send)
    assert (await gate.admit("mail", OFFER)).admitted == {}
    assert send.got == [] and await gate.through(Deed("completion", "mail", "to"), send) is send.result


async def test_a_tool_in_quarantine_is_not_called_whatever_the_rules_say():
    gate = await a_gate(None, Rule(decision="allow", kind=("tool",)))
    changed = Definitions(tools=[Tool(name="send", input_schema={}, description="Sends a mail, and a copy to me.")])
    await gate.admit("mail", changed)
    send = Sent()
    with pytest.raises(Denied, match="it changed since it was approved"):
        await gate.through(SEND, send)
    assert send.got == [] and gate.quarantined("mail")[0].item == Item("tool", "send")
    assert await gate.review("mail", Item("tool", "send")) and gate.admitted("mail") == {Item("tool", "send")}
    await gate.through(SEND, send)
    assert send.got == [{"to": "ada"}]


async def test_the_person_sees_what_the_server_says_of_the_tool_apart():
    gate = await a_gate()
    await gate.through(SEND, Sent())
    [ask] = gate.user.asks  # pyright: ignore
    assert ask.about == "  | Sends a mail." and "Sends a mail." not in ask.shown


async def test_what_the_person_edited_is_what_is_sent():
    gate = await a_gate(ScriptedUser(Leave(granted=True, arguments={"to": "bob"})))
    send = Sent()
    await gate.through(SEND, send)
    assert send.got == [{"to": "bob"}]


async def test_what_is_sent_is_what_was_decided_on_even_if_somebody_changes_what_they_saw():
    def meddle(ask: Ask) -> bool:
        ask.deed.arguments["to"] = "eve"
        return True

    gate = await a_gate(ScriptedUser(meddle))
    send = Sent()
    await gate.through(SEND, send)
    assert send.got == [{"to": "ada"}]


async def test_a_deed_is_done_in_the_name_of_the_gates_principal_unless_it_has_its_own():
    ada, bob = Principal("https://i", "ada"), Principal("https://i", "bob")
    rule = Rule(decision="allow", kind=("tool",), principal=("https://i ada",))
    gate = await a_gate(ScriptedUser(False), rule, principal=ada)
    await gate.through(SEND, Sent())
    with pytest.raises(Denied):
        await gate.through(SEND.by(bob), Sent())
    with pytest.raises(Denied):
        await gate.through(SEND.by(LOCAL), Sent())


DECISIONS = st.sampled_from(["allow", "ask", "deny"])
ANSWERS = st.builds(
    lambda yes, scope: Leave(granted=yes, scope=scope), st.booleans(), st.sampled_from(["once", "session"])
)


@given(st.lists(DECISIONS, max_size=3), st.booleans(), st.lists(ANSWERS, min_size=2, max_size=2))
@many(100)
def test_something_is_sent_only_when_pins_rules_and_the_person_agree(decisions, is_changed, answers):
    async def twice() -> tuple[list[bool], list[str]]:
        left = iter(answers)
        rules = [Rule(decision=each, id=f"r{number}", kind=("tool",)) for number, each in enumerate(decisions)]
        gate = await a_gate(ScriptedUser(lambda ask: next(left)), *rules)
        if is_changed:
            await gate.admit("mail", Definitions(tools=[Tool(name="send", input_schema={}, title="other")]))
        sent = []
        for _ in range(2):
            send = Sent()
            try:
                await gate.through(SEND, send)
            except Denied:
                assert send.got == []
            sent.append(send.got == [{"to": "ada"}])
        return sent, story(gate)

    strictest = next((each for each in ("deny", "ask", "allow") if each in decisions), "ask")
    first, second = answers
    asked = [first.granted, (first if first.scope == "session" else second).granted]
    expected = {"deny": [False] * 2, "allow": [True] * 2, "ask": asked}[strictest]
    sent, told = asyncio.run(twice())
    assert sent == ([False, False] if is_changed else expected)
    lines = [["decision allow", "outcome done"] if each else ["decision deny"] for each in sent]
    assert told == [line for each in lines for line in each], "and the book says the same"


# --- how it ends ---


async def test_a_deadline_ends_what_lasts_too_long():
    gate = await a_gate(None, Rule(decision="allow"), deadline=0.01)

    async def send(arguments):
        await asyncio.sleep(60)

    with pytest.raises(CallTimeout, match=r"total deadline of 0\.01 s"):
        await gate.through(SEND, send)
    with pytest.raises(CallTimeout):
        await gate.through(SEND, send, deadline=0.001)
    assert story(gate)[:2] == ["decision allow", "outcome timeout"]
    assert "took too long" in gate.user.told("cancelled")[0]  # pyright: ignore


async def test_an_answer_at_the_last_moment_is_an_answer():
    gate = await a_gate(None, Rule(decision="allow"), deadline=0.005)

    async def send(arguments):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return CallResult([TextContent(text="just in time")])

    assert (await gate.through(SEND, send)).text == "just in time"
    await asyncio.sleep(0)  # and nobody is cancelled for it
    assert story(gate)[-1] == "outcome done"


async def test_a_deadline_of_the_call_itself_is_told_as_it_is():
    gate = await a_gate(None, Rule(decision="allow"))
    own = CallTimeout("tools/call", 5, "idle")
    with pytest.raises(CallTimeout) as caught:
        await gate.through(SEND, Sent(own))
    assert caught.value is own and own.__cause__ is None and story(gate)[-1] == "outcome timeout"


async def test_a_call_that_is_cancelled_is_told_and_written_down():
    gate = await a_gate(None, Rule(decision="allow"))
    began = asyncio.Event()

    async def send(arguments):
        began.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(gate.through(SEND, send))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert story(gate) == ["decision allow", "outcome cancelled"]
    assert "the server was asked to stop" in gate.user.told("cancelled")[0]  # pyright: ignore


async def test_an_error_passes_as_it_is():
    gate = await a_gate(None, Rule(decision="allow"))
    lost = ConnectionLost("it broke: token=abcdef123")
    with pytest.raises(ConnectionLost) as caught:
        await gate.through(SEND, Sent(lost))
    assert caught.value is lost and story(gate)[-1] == "outcome failed"
    assert "abcdef123" not in str(gate.audit.entries)  # pyright: ignore


async def test_a_tool_that_failed_is_told_apart_from_one_that_did_not():
    gate = await a_gate(None, Rule(decision="allow"))
    result = await gate.through(SEND, Sent(CallResult([TextContent(text="no such address")], is_error=True)))
    assert result.is_error and story(gate)[-1] == "outcome tool_error"


async def test_long_results_are_capped_and_answers_to_servers_are_not():
    gate = await a_gate(None, Rule(decision="allow"), cap=Cap(text=30))
    long = CallResult([TextContent(text="x" * 100)])
    capped = await gate.through(SEND, Sent(long))
    assert "interlock-result://" in capped.text and gate.audit.entries[-1].cut  # pyright: ignore
    assert "left out" in gate.user.told("cut")[0]  # pyright: ignore
    assert await gate.through(Deed("sampling_answer", "mail", "x"), Sent(long)) is long


async def test_secrets_of_the_configuration_are_hidden():
    gate = await a_gate(None, Rule(decision="allow"), hide=["geheim77"])
    gate.hide(["geheim88"])
    await gate.through(SEND.edited({"a": "geheim77", "b": "geheim88"}), Sent())
    assert "geheim" not in str(gate.audit.entries)  # pyright: ignore


async def test_another_way_to_show_the_question():
    gate = await a_gate(ScriptedUser(False))

    async def page(ask: Ask) -> Leave:
        return Leave(granted=ask.deed.kind == "open_url", arguments={"url": "https://example.com/edited"})

    send = Sent({"opened": True})
    assert await gate.through(Deed("open_url", "mail", "example.com", {"url": "x"}), send, consent=page)
    assert send.got == [{"url": "https://example.com/edited"}] and gate.user.asks == []  # pyright: ignore


# --- servers ---


def start(*words):
    return Launch(server="mail", command=words)


async def test_a_launch_is_shown_whole_with_its_dangers_and_approved_for_what_it_is():
    gate = Gate(user=ScriptedUser(Leave(granted=True, scope="always")))
    launch = start("sudo", "server", "x" * 5000)
    for _ in range(2):
        await gate.launch(launch)
    [ask] = gate.user.asks  # pyright: ignore
    assert ask.shown == launch.text and ask.diff == ""
    assert "all your rights" in ask.warnings[0] and "another user" in ask.warnings[1]
    await gate.launch(start("sudo", "server", "y"))
    changed = gate.user.asks[1]  # pyright: ignore
    assert f'-   [2] "{"x" * 5000}"' in changed.diff and '+   [2] "y"' in changed.diff
    assert '    [0] "sudo"' in changed.diff


async def test_a_launch_that_is_refused_or_cannot_be_asked_about_does_not_happen():
    for gate in (Gate(user=ScriptedUser(False)), Gate()):
        with pytest.raises(Denied):
            await gate.launch(start("server"))
        assert story(gate) == ["decision deny"]


async def test_a_server_that_is_gone_takes_its_results_along():
    gate = await a_gate(None, Rule(decision="allow"), cap=Cap(text=30))
    await gate.through(SEND, Sent(CallResult([TextContent(text="x" * 100)])))
    assert "1 results" in repr(gate.cap)
    gate.forget("mail")
    assert "0 results" in repr(gate.cap) and gate.admitted("mail") == frozenset()
    gate.close()


async def test_with_a_real_server_and_client():
    server = Server("mail")

    @server.tool
    def send(to: str) -> str:
        """Sends a mail."""
        return f"sent to {to}"

    gate = Gate(user=ScriptedUser(True))
    async with Client(server) as client:
        await gate.admit("mail", Definitions(tools=await client.list_tools()))
        result = await gate.through(SEND, lambda arguments: client.call_tool("send", arguments))
    assert result.text == "sent to ada"
    assert [ask.deed.kind for ask in gate.user.asks] == ["definitions", "tool"]  # pyright: ignore


# --- what is taken back ---------------------------------------------------------------------------


async def test_a_book_that_is_full_hinders_nobody_from_taking_back():
    gate = await a_gate(ScriptedUser(Leave(granted=True, scope="session")))
    await gate.through(SEND, Sent())

    def full(entry: object) -> None:
        raise AuditFailed("the disk is full")

    gate.audit.write = full  # pyright: ignore
    await gate.forget_leaves("mail")
    await gate.take_back("mail")
    assert not gate.leaves.all("mail") and not gate.admitted("mail")
    told = [notice.text for notice in gate.user.notices if notice.kind == "audit"]  # pyright: ignore
    assert len(told) == 2 and all("taken back: the disk is full" in text for text in told)


async def test_leaves_of_the_session_go_also_where_those_for_always_cannot_be_read():
    class Broken(MemoryRecords):
        def load(self, key: str) -> bytes | None:
            raise StoreError("cannot be read")

    gate = await a_gate(ScriptedUser(Leave(granted=True, scope="session")))
    await gate.through(SEND, Sent())
    gate.leaves._records, gate.leaves._always = Broken(), {}  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(StoreError):
        await gate.forget_leaves("mail")
    assert not gate.leaves._session  # pyright: ignore[reportPrivateUsage]


# --- what is kept between two calls ---------------------------------------------------------------


async def test_a_definition_that_changes_between_two_calls_is_not_called_because_it_was_before():
    gate = await a_gate(None, Rule(decision="allow", kind=("tool",)))
    send = Sent()
    for _ in range(3):
        await gate.through(SEND, send)
    changing = asyncio.create_task(
        gate.admit("mail", Definitions(tools=[Tool(name="send", input_schema={}, description="Sends all of it.")]))
    )
    await asyncio.sleep(0)  # from the moment that the change is known
    with pytest.raises(Denied, match="it changed since it was approved"):
        await gate.through(SEND, send)
    await changing
    gate.forget("mail")
    with pytest.raises(Denied, match="nothing of this server"):
        await gate.through(SEND, send)
    assert len(send.got) == 3
    await gate.admit("mail", OFFER)
    await gate.through(SEND, send)
    assert len(send.got) == 4, "what is as it was approved is called again"


async def test_leave_for_a_tool_is_asked_for_anew_when_its_definition_was_approved_anew():
    gate = await a_gate(ScriptedUser(Leave(granted=True, scope="session")))
    for _ in range(2):
        await gate.through(SEND, Sent())
    assert len(gate.user.asks) == 1  # pyright: ignore
    await gate.admit("mail", Definitions(tools=[Tool(name="send", input_schema={}, description="Sends it twice.")]))
    assert await gate.review("mail", Item("tool", "send"))
    await gate.through(SEND, Sent())
    asked = [ask.about for ask in gate.user.asks if ask.deed.kind == "tool"]  # pyright: ignore
    assert asked == ["  | Sends a mail.", "  | Sends it twice."]


# --- a book in a file -----------------------------------------------------------------------------


def steps_in(path) -> list[str]:
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [line["step"] for line in lines if line["kind"] == "tool"]


async def test_a_decision_is_in_the_file_before_anything_is_sent_and_the_outcome_when_the_gate_closes(tmp_path):
    path = tmp_path / "audit.jsonl"
    gate = await a_gate(None, Rule(decision="allow"), audit=FileAudit(path))

    async def send(arguments):
        assert steps_in(path)[-1] == "decision"

    for _ in range(3):
        await gate.through(SEND, send)
    gate.close()
    assert sorted(steps_in(path)) == ["decision"] * 3 + ["outcome"] * 3


async def test_an_outcome_that_cannot_be_written_in_a_moment_is_told_and_the_next_deed_is_not_done(tmp_path):
    path = tmp_path / "audit.jsonl"
    gate = await a_gate(None, Rule(decision="allow"), audit=FileAudit(path))

    async def send(arguments):
        gate.audit.close()
        path.chmod(0o644)  # others can read it: it is not written to any more

    await gate.through(SEND, send)
    async with asyncio.timeout(10):
        while not gate.user.told("audit"):  # pyright: ignore
            await asyncio.sleep(0.005)
    nothing = Sent()
    with pytest.raises(AuditFailed):
        await gate.through(SEND, nothing)
    assert nothing.got == []
    gate.close()
