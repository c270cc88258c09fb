"""transport/jsonrpc/pending.py: every call has exactly one outcome, at the right time, and leaves nothing behind."""

import asyncio
import logging

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from interlock.transport.jsonrpc import pending as calls
from interlock.transport.jsonrpc.pending import Call, Calls, progress_of
from interlock.wire.channel import Patience
from interlock.wire.errors import BadResult, CallTimeout, ConnectionLost, LocalError, RemoteError
from interlock.wire.messages import read_frame
from support.doubles import notice, result_frame, turns
from support.properties import many
from support.virtual_time import VirtualLoop, virtual_time

FOREVER = Patience(idle=None, total=None)


def now():
    return asyncio.get_running_loop().time()


class Table:
    """Calls, and what was withdrawn."""

    def __init__(self):
        self.withdrawn = []
        self.calls = Calls(asyncio.get_running_loop(), lambda *told: self.withdrawn.append(told))

    def add(self, patience=FOREVER, told=None, cancellable=True, method="tools/call"):
        call = self.calls.add(method, patience, told, cancellable)
        return call, asyncio.ensure_future(call.answer())


def progress(token, value=1):
    return notice("notifications/progress", {"progressToken": token, "progress": value})


# --- answers ---


async def test_an_answer_wakes_its_call():
    table = Table()
    call, waiting = table.add()
    other, still = table.add()
    assert call.id != other.id
    frame = result_frame({"a": 1}, call.id)
    assert table.calls.resolve(frame)
    assert await waiting is frame
    assert not still.done()
    assert call.id not in table.calls.waiting
    table.calls.resolve(result_frame({}, other.id))
    await still


async def test_there_is_a_bound_and_room_again_below_it():
    calls = Calls(asyncio.get_running_loop(), lambda *told: None, 2)
    one, two = (calls.add("tools/call", FOREVER, None, True) for _ in range(2))
    with pytest.raises(LocalError, match="2 calls are waiting"):
        calls.add("tools/call", FOREVER, None, True)
    calls.remove(one)
    assert calls.add("tools/call", FOREVER, None, True).id == two.id + 1  # the refused one took no id


async def test_the_id_doubles_as_progress_token():
    call, waiting = Table().add()
    meta, params = {"progressToken": "another", "x": 1}, {"name": "t", "_meta": {"gone": 1}}
    assert call.with_token(params, meta) == {"name": "t", "_meta": {"x": 1, "progressToken": call.id}}
    assert call.with_token(None, {}) == {"_meta": {"progressToken": call.id}}
    assert meta["progressToken"] == "another" and params["_meta"] == {"gone": 1}
    waiting.cancel()


async def test_ids_are_never_used_again():
    table = Table()
    seen = set()
    for _ in range(100):
        call, waiting = table.add()
        assert call.id not in seen
        seen.add(call.id)
        table.calls.resolve(result_frame({}, call.id))
        await waiting
        table.calls.remove(call)


async def test_an_answer_nobody_waits_for_is_told_apart():
    table = Table()
    call, waiting = table.add()
    assert not table.calls.resolve(result_frame({}, 999))
    assert not table.calls.resolve(result_frame({}, str(call.id)))  # another type is another id
    assert not table.calls.resolve(read_frame(b'{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}'))
    assert not table.calls.resolve(read_frame(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}'))
    assert table.calls.resolve(result_frame({}, call.id))
    assert not table.calls.resolve(result_frame({}, call.id))  # said twice
    await waiting


async def test_an_answer_that_came_before_anybody_waited_is_kept():
    table = Table()
    call = table.calls.add("m", FOREVER, None, True)
    frame = result_frame({}, call.id)
    table.calls.resolve(frame)
    assert await call.answer() is frame


async def test_the_first_outcome_counts():
    call = Call(1, "m", FOREVER, None, True, 0)
    first = result_frame({}, 1)
    call.settle(first)
    call.settle(ConnectionLost("later"))
    assert await call.answer() is first


async def test_a_call_whose_answer_is_broken_fails_at_once():
    table = Table()
    call, waiting = table.add()
    error = BadResult("broken")
    assert not table.calls.spoil(999, error)
    assert table.calls.spoil(call.id, error)
    with pytest.raises(BadResult) as caught:
        await waiting
    assert caught.value is error
    assert not table.calls.spoil(call.id, error)


# --- progress ---


@pytest.mark.parametrize(
    ("params", "token"),
    [
        ({"progressToken": 7, "progress": 1}, 7),
        ({"progressToken": "a"}, "a"),
        ({"progressToken": None}, None),
        ({"progressToken": 1.5}, None),
        ({"progressToken": []}, None),
        ({"progress": 1}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_token_of_a_progress_notification(params, token):
    assert progress_of(notice("notifications/progress", params)) == token


async def test_progress_is_told_in_order_before_the_answer():
    heard = []
    table = Table()
    call, waiting = table.add(told=lambda method, frame: heard.append((method, bytes(frame.params))))
    for value in range(3):
        table.calls.progressed(call.id, progress(call.id, value))
    table.calls.resolve(result_frame({}, call.id))
    await waiting
    assert [b'"progress":%d' % value in params for value, (_, params) in enumerate(heard)] == [True] * 3


async def test_a_listener_may_be_async_and_slow():
    heard, gate = [], asyncio.Event()

    async def slow(method, frame):
        await gate.wait()
        heard.append(method)

    table = Table()
    call, waiting = table.add(told=slow)
    table.calls.progressed(call.id, progress(call.id))
    table.calls.resolve(result_frame({}, call.id))
    await turns()
    assert not waiting.done()
    gate.set()
    await waiting
    assert heard == ["notifications/progress"]


async def test_what_waits_for_a_slow_listener_is_bounded():
    heard, gate = [], asyncio.Event()

    async def slow(method, frame):
        await gate.wait()
        heard.append(frame)

    table = Table()
    call, waiting = table.add(told=slow)
    for value in range(10_000):
        table.calls.progressed(call.id, progress(call.id, value))
    gate.set()
    table.calls.resolve(result_frame({}, call.id))
    await waiting
    assert len(heard) <= 65
    assert b"9999" in bytes(heard[-1].params)  # the newest are kept


@virtual_time
async def test_a_listener_that_swallows_its_interruption_leaves_nothing_behind():
    async def deaf(method, frame):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

    async def calls():
        call = Table().calls.add("tools/call", Patience(idle=None, total=5), deaf, True)
        asyncio.get_running_loop().call_soon(call.hear, progress(call.id))
        with pytest.raises(CallTimeout):
            await call.answer()
        await asyncio.sleep(1)
        return asyncio.current_task().cancelling()

    assert await asyncio.ensure_future(calls()) == 0


async def test_a_listener_that_fails_does_not_fail_the_call(caplog):
    def broken(method, frame):
        raise RuntimeError("listener")

    table = Table()
    call, waiting = table.add(told=broken)
    table.calls.progressed(call.id, progress(call.id))
    frame = result_frame({}, call.id)
    with caplog.at_level(logging.ERROR, "interlock.wire"):
        table.calls.resolve(frame)
        assert await waiting is frame
    assert "listener" in caplog.text


async def test_progress_for_nobody_is_ignored():
    table = Table()
    table.calls.progressed(999, progress(999))
    table.calls.progressed(None, progress(None))
    assert not table.calls.told(999, progress(999))


async def test_a_notification_of_a_subscription_is_told_to_its_call():
    heard = []
    table = Table()
    call, waiting = table.add(told=lambda method, frame: heard.append(method))
    assert table.calls.told(call.id, notice("notifications/tools/list_changed", {}))
    table.calls.resolve(result_frame({}, call.id))
    await waiting
    assert heard == ["notifications/tools/list_changed"]


async def test_nothing_is_kept_where_nobody_listens():
    table = Table()
    call, waiting = table.add()
    table.calls.progressed(call.id, progress(call.id))
    assert call.heard is None
    table.calls.resolve(result_frame({}, call.id))
    await waiting


async def test_nothing_is_heard_after_the_answer():
    heard = []
    call = Call(1, "m", FOREVER, lambda method, frame: heard.append(method), True, 0)
    call.settle(result_frame({}, 1))
    call.hear(progress(1))
    await call.answer()
    assert heard == []


# --- deadlines ---


@virtual_time
async def test_a_call_without_an_answer_times_out_and_is_withdrawn():
    table = Table()
    call, waiting = table.add(Patience(idle=5, total=100))
    start = now()
    with pytest.raises(CallTimeout) as caught:
        await waiting
    assert (caught.value.which, caught.value.seconds, caught.value.method) == ("idle", 5, "tools/call")
    assert now() == start + 5
    assert table.withdrawn == [(call.id, "the deadline passed", True)]
    assert not table.calls.waiting
    assert not table.calls.resolve(result_frame({}, call.id))  # a late answer is dropped


@virtual_time
async def test_progress_moves_the_idle_deadline_but_not_the_total_one():
    table = Table()
    call, waiting = table.add(Patience(idle=5, total=12))
    start = now()
    for step in range(5):
        await asyncio.sleep(4)
        table.calls.progressed(call.id, progress(call.id, step))
    with pytest.raises(CallTimeout) as caught:
        await waiting
    assert (caught.value.which, caught.value.seconds) == ("total", 12)
    assert now() == start + 20
    assert waiting.done()


@virtual_time
async def test_any_word_of_a_subscription_is_a_sign_of_life():
    table = Table()
    call, waiting = table.add(Patience(idle=5, total=None))
    await asyncio.sleep(4)
    table.calls.told(call.id, notice("notifications/x", {}))
    await asyncio.sleep(4)
    assert not waiting.done()
    with pytest.raises(CallTimeout):
        await waiting


@virtual_time
async def test_each_call_has_its_own_deadline():
    table = Table()
    start = now()
    ends = {}
    waits = []
    for seconds in (7, 3, 5, 1):
        _, waiting = table.add(Patience(idle=None, total=seconds))
        waiting.add_done_callback(lambda task, seconds=seconds: ends.__setitem__(seconds, now() - start))
        waits.append(waiting)
    _, patient = table.add(FOREVER)
    await asyncio.wait(waits)
    assert ends == {1: 1, 3: 3, 5: 5, 7: 7}
    assert all(isinstance(waiting.exception(), CallTimeout) for waiting in waits)
    assert not patient.done()
    patient.cancel()
    await asyncio.wait([patient])


@virtual_time
async def test_a_call_that_must_not_be_cancelled_is_marked_so():
    table = Table()
    call, waiting = table.add(Patience(total=1), cancellable=False)
    with pytest.raises(CallTimeout):
        await waiting
    assert table.withdrawn == [(call.id, "the deadline passed", False)]


@virtual_time
async def test_a_call_that_is_over_never_times_out():
    table = Table()
    call, waiting = table.add(Patience(total=1))
    table.calls.resolve(result_frame({}, call.id))
    await waiting
    table.calls.remove(call)
    await asyncio.sleep(100)
    assert table.withdrawn == []


@virtual_time
async def test_a_later_call_is_timed_after_an_earlier_one_went():
    # The timer that an earlier call left behind must not lose the later one.
    table = Table()
    for patience in (Patience(total=10), Patience(total=1)):
        call, waiting = table.add(patience)
        table.calls.resolve(result_frame({}, call.id))
        await waiting
        table.calls.remove(call)
    start = now()
    _, waiting = table.add(Patience(total=4))
    with pytest.raises(CallTimeout):
        await waiting
    assert now() == start + 4


@virtual_time
async def test_a_withdrawal_that_ends_the_connection_leaves_no_call_twice():
    # Telling the peer of one timeout may find out that the connection is gone, which fails all the others.
    calls = Calls(asyncio.get_running_loop(), lambda *told: calls.fail(ConnectionLost("gone"), None))
    waits = [asyncio.ensure_future(calls.add("m", Patience(total=1), None, True).answer()) for _ in range(3)]
    await asyncio.wait(waits)
    assert sorted(type(each.exception()).__name__ for each in waits) == ["CallTimeout"] + ["ConnectionLost"] * 2
    assert not calls.waiting


# --- the end ---


async def test_the_end_fails_every_waiter_once():
    table = Table()
    waits = [table.add()[1] for _ in range(5)]
    table.calls.fail(ConnectionLost("gone"), None)
    await asyncio.wait(waits)
    assert all(isinstance(waiting.exception(), ConnectionLost) for waiting in waits)
    assert len({id(waiting.exception()) for waiting in waits}) == 5
    assert not table.calls.waiting


@pytest.mark.parametrize(
    ("position", "delivered", "sent"),
    [(None, 5, None), (5, None, None), (0, 0, False), (5, 5, False), (5, 6, True), (5, 100, True)],
)
async def test_each_waiter_is_told_whether_its_request_left(position, delivered, sent):
    table = Table()
    call, waiting = table.add()
    call.position = position
    table.calls.fail(ConnectionLost("gone"), delivered)
    with pytest.raises(ConnectionLost) as caught:
        await waiting
    assert caught.value.sent is sent


@virtual_time
async def test_the_end_leaves_no_timer():
    table = Table()
    _, waiting = table.add(Patience(total=5))
    table.calls.fail(ConnectionLost("gone"), None)
    await asyncio.wait([waiting])
    assert isinstance(waiting.exception(), ConnectionLost)
    await asyncio.sleep(100)
    assert table.withdrawn == []


# --- any order of anything ---


class CallsMachine(RuleBasedStateMachine):
    """Adds, answers, extends, times out, gives up and fails calls in any order; a model says what each must get."""

    ids = Bundle("ids")
    SECONDS = st.sampled_from([None, 1, 2, 5])

    @initialize()
    def begin(self):
        self.loop = VirtualLoop()
        self.withdrawn = []
        self.calls = Calls(self.loop, lambda id, reason, cancellable: self.withdrawn.append(id))
        self.step = 0
        self.tasks, self.model, self.patience, self.alive_at, self.born_at = {}, {}, {}, {}, {}
        self.heard = {}
        self.failed = False

    @rule(target=ids, idle=SECONDS, total=SECONDS)
    def add(self, idle, total):
        heard = []
        call = self.calls.add("m", Patience(idle=idle, total=total), lambda method, frame: heard.append(frame), True)
        self.heard[call.id] = heard
        self.patience[call.id] = (idle, total)
        self.born_at[call.id] = self.alive_at[call.id] = self.loop.time()
        self.model[call.id] = "waiting"
        self.tasks[call.id] = self.loop.create_task(self.wait(call))
        self.settle()
        return call.id

    async def wait(self, call):
        try:
            return await call.answer()
        finally:
            self.calls.remove(call)

    def settle(self):
        self.loop.run_until_complete(turns(3))

    @rule(id=ids)
    def answer(self, id):
        assert self.calls.resolve(result_frame({}, id)) is (self.model[id] == "waiting")
        if self.model[id] == "waiting":
            self.model[id] = "answered"
        self.settle()

    @rule(id=ids)
    def progress(self, id):
        before = len(self.heard[id])
        self.step += 1  # only what increases is a sign of life
        self.calls.progressed(id, progress(id, self.step))
        self.settle()
        waiting = self.model[id] == "waiting"
        assert len(self.heard[id]) == before + waiting
        if waiting:
            self.alive_at[id] = self.loop.time()

    @rule(id=ids)
    def give_up(self, id):
        self.tasks[id].cancel()
        if self.model[id] == "waiting":
            self.model[id] = "cancelled"
        self.settle()

    @rule(seconds=st.sampled_from([0.5, 1, 3]))
    def time_passes(self, seconds):
        self.loop.run_until_complete(asyncio.sleep(seconds))
        self.settle()
        now = self.loop.time()
        for id, state in self.model.items():
            if state == "waiting":
                idle, total = self.patience[id]
                over_total = total is not None and self.born_at[id] + total <= now
                over_idle = idle is not None and self.alive_at[id] + idle <= now
                if over_total or over_idle:
                    self.model[id] = "timed out"

    @rule()
    def fail(self):
        self.calls.fail(ConnectionLost("gone"), None)
        for id, state in self.model.items():
            if state == "waiting":
                self.model[id] = "lost"
        self.settle()
        # A connection ends once; the next rules go on with a new one.
        self.calls = Calls(self.loop, lambda id, reason, cancellable: self.withdrawn.append(id))
        self.calls._last_id = max(self.model, default=0)

    @invariant()
    def every_call_has_the_outcome_of_the_model(self):
        for id, state in getattr(self, "model", {}).items():
            task = self.tasks[id]
            assert task.done() is (state != "waiting"), (id, state)
            if state == "answered":
                assert task.result().id == id
            elif state == "cancelled":
                assert task.cancelled()
            elif state != "waiting":
                kind = {"timed out": CallTimeout, "lost": ConnectionLost}[state]
                assert isinstance(task.exception(), kind)

    @invariant()
    def only_those_that_wait_are_in_the_table(self):
        waiting = {id for id, state in getattr(self, "model", {}).items() if state == "waiting"}
        assert set(getattr(getattr(self, "calls", None), "waiting", {})) == waiting

    @invariant()
    def only_those_that_timed_out_were_withdrawn(self):
        timed_out = [id for id, state in getattr(self, "model", {}).items() if state == "timed out"]
        assert sorted(getattr(self, "withdrawn", [])) == timed_out

    def teardown(self):
        if not hasattr(self, "loop"):
            return
        self.calls.fail(ConnectionLost("gone"), None)
        self.settle()
        assert all(task.done() for task in self.tasks.values())
        for task in self.tasks.values():
            if not task.cancelled():
                task.exception()
        self.loop.close()


TestCallsInAnyOrder = CallsMachine.TestCase
TestCallsInAnyOrder.settings = many(80, stateful_step_count=30)


# --- listeners that cannot keep up ---


@virtual_time
async def test_a_queue_of_slow_listeners_does_not_hold_the_deadline():
    table, began = Table(), now()

    async def slow(method, frame):
        await asyncio.sleep(100)

    call, waiting = table.add(Patience(idle=None, total=5), told=slow)
    for _ in range(10):
        call.hear(notice("notifications/message", {"level": "info"}))
    with pytest.raises(CallTimeout):
        await waiting
    assert now() - began == 5


@virtual_time
async def test_who_cancels_a_call_with_a_queue_of_slow_listeners_is_heard():
    table = Table()

    async def slow(method, frame):
        await asyncio.sleep(100)

    call, waiting = table.add(told=slow)
    for _ in range(10):
        call.hear(notice("notifications/message", {"level": "info"}))
    await turns(3)
    call.settle(ConnectionLost("gone"))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_what_waits_for_a_listener_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(calls, "_MOST_HEARD_BYTES", 10_000)
    table, heard = Table(), []
    call, waiting = table.add(told=lambda method, frame: heard.append(method))
    for _ in range(50):
        call.hear(notice("notifications/message", {"data": "x" * 1000}))
        await turns(2)
    assert len(heard) == 50 and not waiting.done(), "what was taken does not count"
    for _ in range(50):
        call.hear(progress(call.id) if call.heard else notice("notifications/message", {"data": "x" * 1000}))
    assert not call.outcome
    for _ in range(10):
        call.hear(notice("notifications/message", {"data": "x" * 1000}))
    with pytest.raises(RemoteError, match="10000 bytes"):
        await waiting


async def test_a_listener_that_fails_on_and_on_does_not_fill_the_log(caplog):
    table = Table()

    def broken(method, frame):
        raise ValueError("broken")

    call, waiting = table.add(told=broken)
    for _ in range(100):
        call.hear(notice("notifications/" + "x" * 1000, {}))
    call.settle(result_frame({}, call.id))
    await waiting
    assert len(caplog.records) == 10
    assert all(len(record.getMessage()) < 400 for record in caplog.records)
