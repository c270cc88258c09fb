"""client/request.py: what is told meanwhile goes to the caller, what is asked to its callbacks."""

import pytest

from interlock.client.callbacks import Answers
from interlock.client.request import Calling, patience_of
from interlock.wire.channel import Patience
from interlock.wire.errors import LocalError
from interlock.wire.exchange import Peer, Question
from interlock.wire.meta import NO_META

PROGRESS = "notifications/progress"


def calling(**listeners):
    return Calling("tools/call", {"name": "a"}, Peer(), Patience(idle=5), Answers(roots=["file:///a"]), **listeners)


def test_a_call_is_an_exchange():
    exchange = calling()
    assert (exchange.method, exchange.params, exchange.raw) == ("tools/call", {"name": "a"}, None)
    assert (exchange.patience.idle, exchange.meta, exchange.live) == (5, NO_META, True)


async def test_progress_goes_to_its_listener():
    heard = []
    exchange = calling(on_progress=lambda *told: heard.append(told))
    await exchange.notify(PROGRESS, {"progress": 1, "total": 2, "message": "m"})
    await exchange.notify(PROGRESS, {"progress": 2})
    await exchange.notify("notifications/message", {"data": 1})
    assert heard == [(1, 2, "m"), (2, None, None)]


async def test_everything_else_goes_to_the_other():
    heard = []
    exchange = calling(on_notification=lambda *told: heard.append(told))
    await exchange.notify(PROGRESS, {"progress": 1})
    await exchange.notify("notifications/message", {"data": 1})
    assert heard == [(PROGRESS, {"progress": 1}), ("notifications/message", {"data": 1})]


async def test_listeners_may_be_async():
    heard = []

    async def listens(*told):
        heard.append(told)

    exchange = calling(on_progress=listens, on_notification=listens)
    await exchange.notify(PROGRESS, {"progress": 1})
    await exchange.notify("notifications/x", {})
    assert heard == [(1, None, None), ("notifications/x", {})]


async def test_without_listeners_nothing_happens():
    await calling().notify(PROGRESS, {"progress": 1})


@pytest.mark.parametrize(
    "params", [{}, {"progress": "half"}, {"progress": None}, {"progress": [1]}, {"progress": True}]
)
async def test_progress_that_is_none_never_reaches_the_listener(params):
    # A server's nonsense must not become the caller's TypeError in the middle of a progress bar.
    heard = []
    exchange = calling(on_progress=lambda *told: heard.append(told))
    await exchange.notify(PROGRESS, params)
    assert all(isinstance(progress, int | float) and not isinstance(progress, bool) for progress, *_ in heard)


async def test_a_question_goes_to_the_callbacks():
    assert await calling().ask(Question("roots/list", {})) == {"roots": [{"uri": "file:///a"}]}


NAN = float("nan")


@pytest.mark.parametrize("odd", [0, -1, NAN, "5", True, Patience(idle=NAN), Patience(total=NAN), Patience(idle="x")])
def test_a_deadline_that_would_never_come_is_refused(odd):
    with pytest.raises(LocalError, match="timeout="):
        patience_of(odd)


@pytest.mark.parametrize("given", [Patience(), Patience(idle=None, total=None), Patience(idle=1, total=-0.5)])
def test_what_is_left_of_a_deadline_may_be_nothing(given):
    assert patience_of(given) is given and patience_of(0.5) == Patience(idle=0.5)
