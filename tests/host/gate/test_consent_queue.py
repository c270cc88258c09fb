"""Questions to the person: one at a time, bounded in number and time, and only a yes is a yes."""

from __future__ import annotations

import asyncio

import pytest

from interlock.host.gate.action import Deed, Denied
from interlock.host.gate.consent_queue import Consent
from interlock.host.user import Absent, Ask, Leave, ScriptedUser

DEED = Deed("tool", "mail", "send")


def ask(*scopes) -> Ask:
    return Ask(deed=DEED, shown="", why="", scopes=scopes or ("once", "session", "always"))


async def test_nobody_is_not_asked():
    with pytest.raises(Denied, match="nobody is there") as caught:
        async with Consent(Absent()).turn(DEED):
            pytest.fail("it was nobody's turn")
    assert "rule of the policy" in str(caught.value.hint)


async def test_one_question_at_a_time_and_the_others_in_their_order():
    open_now = 0
    order: list[int] = []
    consent = Consent(ScriptedUser(True))

    async def one(number: int) -> None:
        nonlocal open_now
        async with consent.turn(DEED):
            open_now += 1
            assert open_now == 1
            await asyncio.sleep(0)
            order.append(number)
            open_now -= 1

    await asyncio.gather(*(one(number) for number in range(10)))
    assert order == list(range(10))


async def test_what_is_withdrawn_is_not_shown_any_more_and_counts_as_no():
    closed: list[str] = []
    consent, mine = Consent(ScriptedUser(True)), Deed("tool", "shop", "buy")

    async def one(deed: Deed, work: asyncio.Event) -> str:
        async with consent.turn(deed):
            try:
                await work.wait()
            except asyncio.CancelledError:
                closed.append(deed.server)
                raise
        return "shown"

    go = asyncio.Event()
    tasks = [asyncio.create_task(one(deed, go)) for deed in (DEED, DEED, mine, DEED)]
    await asyncio.sleep(0)
    for _ in range(2):  # who withdraws twice does no harm
        consent.withdraw("mail")
    consent.withdraw("nobody")
    go.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(end).partition(": ")[2] for end in ends if isinstance(end, Denied)] == ["its server was removed"] * 3
    assert ends[2] == "shown" and closed == ["mail"]
    async with consent.turn(DEED):
        pass  # it may be asked about again


async def test_a_withdrawn_question_keeps_no_caller_from_being_cancelled():
    consent = Consent(ScriptedUser(True))

    async def wait() -> None:
        async with consent.turn(DEED):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    consent.withdraw("mail")
    await asyncio.wait([task])
    assert task.cancelled()


async def test_more_than_may_wait_are_refused_and_leave_room_again():
    consent = Consent(ScriptedUser(True), waiting=2)
    go = asyncio.Event()

    async def wait() -> None:
        async with consent.turn(DEED):
            await go.wait()

    tasks = [asyncio.create_task(wait()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Denied, match="2 questions wait"):
        async with consent.turn(DEED):
            pytest.fail("there was no room")
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    go.set()
    async with consent.turn(DEED):
        pass
    await tasks[0]


@pytest.mark.parametrize(
    ("said", "offered", "scope"),
    [
        ("always", ("once", "session", "always"), "always"),
        ("always", ("once", "session"), "session"),
        ("always", ("once",), "once"),
        ("session", ("once", "always"), "once"),
        ("once", ("always",), "once"),
    ],
)
async def test_leave_lasts_no_longer_than_was_on_offer(said, offered, scope):
    consent = Consent(ScriptedUser(Leave(granted=True, scope=said)))
    leave = await consent.answer(ask(*offered))
    assert leave.granted and leave.scope == scope


async def test_leave_for_edited_arguments_is_for_once():
    consent = Consent(ScriptedUser(Leave(granted=True, scope="always", arguments={"a": 1})))
    assert await consent.answer(ask()) == Leave(granted=True, scope="once", arguments={"a": 1})


async def test_there_is_another_way_to_show_a_question():
    user = ScriptedUser(False)

    async def page(asked: Ask) -> Leave:
        return Leave(granted=asked.deed is DEED)

    assert (await Consent(user).answer(ask(), page)).granted and user.asks == []


async def test_who_does_not_answer_says_no():
    consent = Consent(ScriptedUser(lambda asked: asyncio.sleep(60)), seconds=0.01)
    with pytest.raises(Denied, match=r"nobody answered within 0\.01 s"):
        await consent.answer(ask())


@pytest.mark.parametrize("error", [ValueError("\x1b broken"), TimeoutError(), KeyError("x")])
async def test_a_screen_that_fails_says_no(error):
    async def fails(asked: Ask) -> Leave:
        raise error

    with pytest.raises(Denied, match=r"could not be shown|the answer failed") as caught:
        await Consent(ScriptedUser(True)).answer(ask(), fails)
    assert caught.value.__cause__ is error and str(caught.value).isprintable()


@pytest.mark.parametrize("said", [None, True, {"granted": True}, Leave(granted=True, scope="for ever")])  # pyright: ignore
async def test_what_is_no_answer_is_a_no(said):
    async def odd(asked: Ask):
        return said

    with pytest.raises(Denied, match="the answer was none"):
        await Consent(ScriptedUser(True)).answer(ask(), odd)


async def test_only_true_grants():
    leave = await Consent(ScriptedUser(Leave(granted="yes"))).answer(ask())  # pyright: ignore
    assert not leave.granted
