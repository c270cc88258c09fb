"""protocol/server/responder.py: a handler gives or raises, and one answer goes out."""

import asyncio
import json
import logging

import msgspec
import pytest

from interlock.protocol.request import Served
from interlock.protocol.server.responder import NO_STAMP, Stamp, answer, refuse
from interlock.revisions.table import REVISIONS
from interlock.wire.errors import InvalidParams, ParseError, Refused, ResourceNotFound, UrlElicitationRequired
from interlock.wire.exchange import Lasting, Peer
from interlock.wire.meta import NO_META, SERVER_INFO
from interlock.wire.types.capabilities import ClientCapabilities
from support.doubles import Outlet, turns

A, B, C, D, E = REVISIONS.values()
STAMPS = {name: Stamp({SERVER_INFO: name}) for name in ("one", "two")}


async def nobody(exchange, question):
    raise AssertionError("not asked here")


def served(revision=D, method="tools/call", outlet=None):
    return Served(method, {}, None, Peer(), NO_META, outlet or Outlet(), revision, nobody)


async def answered(handler, revision=D, method="tools/call", id=7, stamp=NO_STAMP):
    return json.loads(await answer(handler, served(revision, method), id, stamp))


def gives(result):
    async def handler(exchange):
        return result

    return handler


def raises(error):
    async def handler(exchange):
        raise error

    return handler


async def test_a_result_is_answered_under_its_id():
    assert await answered(gives({"content": []}), id="a") == {"jsonrpc": "2.0", "id": "a", "result": {"content": []}}


async def test_a_stateless_result_says_what_it_is():
    assert (await answered(gives({"content": []}), E))["result"] == {"resultType": "complete", "content": []}
    told = {"resultType": "input_required", "inputRequests": {}}
    assert (await answered(gives(told), E))["result"] == told


async def test_a_handshake_result_is_in_the_words_of_its_revision():
    result = {"tools": [{"name": "n", "title": "T"}], "ttlMs": 5, "_meta": {SERVER_INFO: {}}}
    assert (await answered(gives(result), A, "tools/list"))["result"] == {"tools": [{"name": "n"}]}


async def test_a_lasting_result_is_encoded_once_per_revision():
    page = Lasting({"tools": [{"name": "n", "title": "T"}]})
    for revision in (A, D, E):
        first = await answered(gives(page), revision, "tools/list")
        dict.__setitem__(page, "tools", "changed behind its back")  # shows that the second answer is not encoded again
        assert await answered(gives(page), revision, "tools/list") == first
        dict.__setitem__(page, "tools", [{"name": "n", "title": "T"}])
    assert {name for name, _ in page.forms} == {A.name, D.name, E.name}
    assert b"title" not in bytes(page.forms[A.name, NO_STAMP])


async def test_a_lasting_result_of_two_makers_says_each_time_who_made_it():
    page = Lasting({"tools": []})
    for name in ("one", "two", "one"):
        stamp = STAMPS[name]
        assert (await answered(gives(page), E, "tools/list", stamp=stamp))["result"]["_meta"] == {SERVER_INFO: name}


async def test_a_refusal_has_the_code_of_its_revision():
    gone = raises(ResourceNotFound("gone", {"uri": "a:b"}))
    assert (await answered(gone, D))["error"] == {"code": -32002, "message": "gone", "data": {"uri": "a:b"}}
    assert (await answered(gone, E))["error"]["code"] == -32602
    assert (await answered(raises(Refused("own", code=5))))["error"]["code"] == 5


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("secret"),
        KeyError("secret"),
        ExceptionGroup("secret", [ValueError("secret")]),
        SystemExit("secret"),
        KeyboardInterrupt("secret"),
        TimeoutError("secret"),
        asyncio.CancelledError("secret"),
    ],
)
async def test_a_bug_tells_the_peer_a_reference_and_the_log_everything(error, caplog):
    with caplog.at_level(logging.ERROR, "interlock.server"):
        told = (await answered(raises(error)))["error"]
    assert told["code"] == -32603
    assert "secret" not in json.dumps(told)
    reference = told["message"].partition("reference ")[2].rstrip(")")
    assert reference
    [record] = caplog.records
    assert reference in record.getMessage() and "tools/call" in record.getMessage()
    assert record.exc_info[1] is error


async def test_a_result_that_is_no_json_is_a_bug_of_the_handler(caplog):
    told = (await answered(gives({"content": [object()]})))["error"]
    assert told["code"] == -32603
    assert caplog.records


async def test_cancellation_by_the_edge_escapes():
    started = asyncio.Event()

    async def forever(exchange):
        started.set()
        await asyncio.Event().wait()

    exchange = served()
    task = asyncio.ensure_future(answer(forever, exchange, 1))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert not exchange.live


async def test_a_timeout_of_the_handler_is_its_own():
    async def handler(exchange):
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return {"content": ["late"]}

    assert (await answered(handler))["result"] == {"content": ["late"]}


@pytest.mark.parametrize("handler", [gives({}), raises(ParseError("x")), raises(RuntimeError("x"))])
async def test_nothing_can_be_said_after_the_answer(handler):
    outlet = Outlet()
    exchange = served(outlet=outlet)
    await answer(handler, exchange, 1)
    assert not exchange.live
    await exchange.notify("notifications/message", {})
    assert outlet.told == []


async def test_held_progress_goes_out_before_the_answer():
    outlet = Outlet()

    async def handler(exchange):
        for value in range(1000):
            await exchange.notify("notifications/progress", {"progressToken": 1, "progress": value})
        await turns()
        return {}

    await answer(handler, served(outlet=outlet), 1)
    assert outlet.told[-1][1]["progress"] == 999


# --- refusing without a handler ---


def test_a_refusal_without_an_id_has_none():
    assert json.loads(refuse(D, None, ParseError("x"))) == {
        "jsonrpc": "2.0",
        "error": {"code": -32700, "message": "x"},
    }


def test_data_that_is_no_json_is_left_out():
    told = json.loads(refuse(D, 1, InvalidParams("x", {"bad": object()})))
    assert told["error"] == {"code": -32602, "message": "x"}


def test_data_of_any_json_stays():
    told = json.loads(refuse(D, 1, InvalidParams("x", {"raw": msgspec.Raw(b"[1]")})))
    assert told["error"]["data"] == {"raw": [1]}


# --- a url that has to be opened first ---

ASKS = {"elicitations": [{"mode": "url", "url": "https://example.com", "elicitationId": "1", "message": "m"}]}


async def required(revision, capabilities, data=ASKS, method="tools/call"):
    exchange = served(revision, method)
    exchange.peer = Peer(capabilities=ClientCapabilities(elicitation=capabilities))
    return json.loads(await answer(raises(UrlElicitationRequired("open it", data)), exchange, 1))


async def test_a_client_that_can_open_urls_is_told_to():
    told = (await required(D, {"url": {}}))["error"]
    assert (told["code"], told["data"]) == (-32042, ASKS)


@pytest.mark.parametrize(
    ("revision", "capabilities", "data"), [(D, {}, ASKS), (C, {}, ASKS), (D, {"url": {}}, None), (D, {"url": {}}, {})]
)
async def test_any_other_reads_the_reason(revision, capabilities, data):
    result = (await required(revision, capabilities, data))["result"]
    assert result == {"content": [{"type": "text", "text": "open it"}], "isError": True}


@pytest.mark.parametrize("member", ["mode", "url", "elicitationId", "message"])
async def test_a_page_that_lacks_something_cannot_be_opened(member):
    [page] = ASKS["elicitations"]
    for wrong in ({name: value for name, value in page.items() if name != member}, {**page, member: 5}, 5):
        assert "isError" in (await required(D, {"url": {}}, {"elicitations": [page, wrong]}))["result"]


async def test_outside_of_tools_there_is_only_an_error():
    told = (await required(D, {}, ASKS, "prompts/get"))["error"]
    assert (told["code"], told["message"]) == (-32603, "open it")


async def test_the_newest_revision_has_no_such_code():
    told = await required(E, {"url": {}})
    assert told.get("error", {}).get("code") != -32042
