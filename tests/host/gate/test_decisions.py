"""From a deed to a ruling: rules first, then what was answered before, then the person; and all of it written down."""

from __future__ import annotations

import asyncio
import logging

import pytest

from interlock.auth.client.token_storage import MemoryRecords
from interlock.host.gate.action import Deed, Denied
from interlock.host.gate.audit import AuditFailed, MemoryAudit
from interlock.host.gate.audit_writer import Ledger
from interlock.host.gate.conditions import conditions_of
from interlock.host.gate.consent_queue import Consent
from interlock.host.gate.decisions import Judge, Question
from interlock.host.gate.permissions import Leaves
from interlock.host.gate.policy import Policy, Rule
from interlock.host.user import Absent, Ask, Leave, ScriptedUser
from interlock.wire.errors import StoreError

SEND = Deed("tool", "mail", "send", {"to": "ada"})


class Court:
    """A judge and what it works with."""

    def __init__(self, user=None, *rules: Rule, leaves: Leaves | None = None, waiting: int = 64) -> None:
        self.user = user if user is not None else ScriptedUser()
        self.audit = MemoryAudit()
        self.leaves = leaves or Leaves()
        consent = Consent(self.user, waiting=waiting)
        self.judge = Judge(Policy(rules), self.leaves, consent, Ledger(self.audit), self.user)

    async def rule(self, deed: Deed = SEND, question: Question | None = None):
        return await self.judge.rule(deed, lambda _: question or Question())

    async def denied(self, deed: Deed = SEND, question: Question | None = None) -> Denied:
        with pytest.raises(Denied) as caught:
            await self.rule(deed, question)
        return caught.value

    @property
    def story(self) -> list[str]:
        return [
            f"{each.decision} by {each.rule}{' ' + each.scope if each.scope else ''}" for each in self.audit.entries
        ]


async def test_what_a_rule_allows_is_not_asked_about():
    court = Court(None, Rule(decision="allow", id="r"))
    ruling = await court.rule()
    assert ruling.deed is SEND and ruling.call == court.audit.entries[0].call
    assert court.user.asks == [] and court.story == ["allow by r"]


async def test_what_a_rule_denies_is_not_asked_about_either():
    court = Court(ScriptedUser(True), Rule(decision="deny", id="r", because="mail is private"))
    denied = await court.denied()
    assert denied.because == "mail is private" and "change the rule" in str(denied.hint)
    assert court.user.asks == [] and court.story == ["deny by r"]
    assert court.user.told("denied") == [str(denied)]


async def test_the_person_is_shown_what_to_whom_and_why():
    court = Court(ScriptedUser(True))
    await court.rule(
        Deed("tool", "mail", "send", {"to": "ada"}, sources={"files"}), Question(diff="d", warnings=("w",))
    )
    [ask] = court.user.asks
    assert 'the tool "send" of the server "mail"' in ask.shown and '"to": "ada"' in ask.shown
    assert "tool is ask by default" in ask.why and ask.diff == "d"
    assert ask.warnings[0] == "w" and '"files"' in ask.warnings[1]
    assert ask.scopes == ("once", "session", "always") and court.story == ["allow by default once"]


async def test_a_no_is_a_no():
    court = Court(ScriptedUser(False))
    assert (await court.denied()).because == "the user said no"
    assert court.story == ["deny by default"]


async def test_without_a_person_what_must_be_asked_is_denied():
    court = Court(Absent())
    assert "nobody is there" in (await court.denied()).because and court.story == ["deny by default"]


async def test_leave_for_the_session_is_not_asked_for_twice():
    court = Court(ScriptedUser(Leave(granted=True, scope="session")))
    for arguments in ({"to": "ada"}, {"to": "bob"}):
        await court.rule(SEND.edited(arguments), Question(pin="p"))
    assert len(court.user.asks) == 1 and court.story == ["allow by default session", "allow by default remembered"]
    await court.rule(SEND, Question(pin="changed"))
    assert len(court.user.asks) == 2, "another definition is another question"


async def test_a_lasting_no_is_not_asked_about_twice():
    court = Court(ScriptedUser(Leave(granted=False, scope="session")))
    await court.denied()
    assert "before, and for longer" in (await court.denied()).because and len(court.user.asks) == 1


async def test_a_rule_that_denies_counts_before_a_leave():
    leaves = Leaves()
    await Court(ScriptedUser(Leave(granted=True, scope="session")), leaves=leaves).rule()
    court = Court(ScriptedUser(True), Rule(decision="deny"), leaves=leaves)
    await court.denied()


async def test_what_the_person_edits_is_what_is_done():
    court = Court(ScriptedUser(Leave(granted=True, scope="always", arguments={"to": "bob"})))
    ruling = await court.rule()
    assert ruling.deed.arguments == {"to": "bob"} and court.audit.entries[0].arguments == '{"to":"bob"}'
    assert court.leaves.all("mail") == [], "what was edited was seen once"


async def test_nobody_edits_past_a_rule_that_denies():
    rule = Rule(decision="deny", id="not-eve", arguments=conditions_of({"to": "eve"}, ""))
    court = Court(ScriptedUser(Leave(granted=True, arguments={"to": "eve"})), rule)
    assert (await court.denied()).rule == "not-eve"


async def test_what_cannot_be_sent_is_no_edit():
    court = Court(ScriptedUser(Leave(granted=True, arguments={"to": object()})))
    assert "what it was edited to cannot be sent" in (await court.denied()).because and court.story == [
        "deny by default"
    ]


async def test_several_at_once_are_asked_one_after_the_other_and_one_leave_answers_all():
    async def slowly(ask: Ask) -> Leave:
        await asyncio.sleep(0)
        return Leave(granted=True, scope="session")

    court = Court(ScriptedUser(slowly))
    await asyncio.gather(*(court.rule() for _ in range(10)))
    assert len(court.user.asks) == 1 and court.story == [
        "allow by default session",
        *["allow by default remembered"] * 9,
    ]


async def test_what_changes_while_it_waits_or_is_read_is_looked_at_again():
    court = Court(ScriptedUser(True))
    pins = iter(["a", "a", "b"])
    with pytest.raises(Denied, match="changed while it was being asked about"):
        await court.judge.rule(SEND, lambda _: Question(pin=next(pins)))
    assert court.story == ["deny by pins"]

    def gone(deed: Deed) -> Question:
        if court.user.asks:
            raise Denied(deed, "it is gone", rule="pins")
        return Question()

    court.user.asks.clear()
    with pytest.raises(Denied, match="it is gone"):
        await court.judge.rule(SEND, gone)


async def test_leave_is_not_kept_for_what_was_gone_when_it_was_given():
    court = Court(ScriptedUser(Leave(granted=True, scope="always")))
    pins = iter(["a", "a", "b"])
    with pytest.raises(Denied, match="changed while it was being asked about"):
        await court.judge.rule(SEND, lambda _: Question(pin=next(pins)))
    assert not court.leaves.all("mail")
    court = Court(ScriptedUser(Leave(granted=False, scope="always")))
    pins = iter(["a", "a", "b"])
    with pytest.raises(Denied, match="the user said no"):
        await court.judge.rule(SEND, lambda _: Question(pin=next(pins)))
    assert {kept.granted for kept in court.leaves.all("mail")} == {False}, "a no is kept all the same"


async def test_what_cannot_be_written_down_is_not_allowed():
    court = Court(ScriptedUser(True), Rule(decision="allow", name=("send",)))

    def full(entry) -> None:
        raise AuditFailed("the disk is full")

    court.audit.write = full  # pyright: ignore
    for deed in (SEND, Deed("tool", "mail", "other")):
        with pytest.raises(AuditFailed, match="disk is full"):
            await court.rule(deed)


class BrokenRecords(MemoryRecords):
    def load(self, key: str) -> bytes | None:
        raise StoreError("no such disk")


async def test_leaves_that_cannot_be_read_or_kept_are_asked_for_again_and_told():
    court = Court(ScriptedUser(Leave(granted=True, scope="always")), leaves=Leaves(BrokenRecords()))
    await court.rule()
    assert any("cannot be read" in text for text in court.user.told("audit"))
    assert any("for this session only" in text for text in court.user.told("audit"))


async def test_what_was_launched_is_remembered_as_it_was_shown():
    court = Court(ScriptedUser(Leave(granted=True, scope="always")))
    deed = Deed("launch", "mail", "mail", {"command": ["x"]})
    await court.rule(deed, Question(pin="p", shown="start x"))
    assert court.leaves.last_shown(deed) == "start x"


async def test_a_screen_that_fails_to_show_a_notice_fails_nothing(caplog):
    court = Court(ScriptedUser(False))
    court.user.tell = lambda notice: 1 / 0  # pyright: ignore
    await court.denied()
    assert "a notice could not be shown" in caplog.text


async def test_whether_somebody_must_be_asked_is_known_without_waiting():
    asking, allowing = Court(ScriptedUser(True)), Court(ScriptedUser(), Rule(decision="allow"))
    assert asking.judge.at_once(SEND, lambda _: Question()) is None and asking.story == []
    assert allowing.judge.at_once(SEND, lambda _: Question()) is not None and len(allowing.story) == 1


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
async def test_where_nobody_is_there_each_step_is_in_the_log_for_debugging_only(caplog, level):
    court = Court(Absent())
    with caplog.at_level(level, "interlock.host"):
        court.judge.tell("calling", SEND)
        court.judge.tell("cut", SEND)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == (
        ["= calling", "= cut"] if level == logging.DEBUG else ["= cut"]
    )
