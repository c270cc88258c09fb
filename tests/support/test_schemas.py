"""The oracle itself: loads every revision, agrees with the official examples, refuses known-bad frames."""

from __future__ import annotations

from typing import Any

import pytest

from support.schema_source import HANDSHAKE_REVISIONS, MODERN_REVISION, REVISIONS, load_examples
from support.schemas import Oracle, SchemaViolation, validator

EXAMPLES = load_examples()
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(method: str, params: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
    return frame | ({} if params is None else {"params": params}) | members


def answer(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1} | members


@pytest.fixture(params=REVISIONS)
def oracle(request: pytest.FixtureRequest) -> Oracle:
    return Oracle.load(request.param)


@pytest.fixture(params=HANDSHAKE_REVISIONS)
def handshake(request: pytest.FixtureRequest) -> Oracle:
    return Oracle.load(request.param)


@pytest.fixture
def modern() -> Oracle:
    return Oracle.load(MODERN_REVISION)


def refuses(oracle: Oracle, frame: Any, **how: Any) -> SchemaViolation:
    how.setdefault("sender", "client")
    with pytest.raises(SchemaViolation) as caught:
        oracle.check_frame(frame, **how)
    return caught.value


# --- loading ---


def test_every_definition_compiles(oracle: Oracle):
    for name in oracle.document.definitions:
        validator(oracle.revision, name, True)


def test_unknown_revisions_and_definitions_are_mistakes_of_the_test(oracle: Oracle):
    with pytest.raises(ValueError, match="unknown revision"):
        Oracle.load("2023-01-01")
    with pytest.raises(KeyError, match="defines no Nonsense"):
        oracle.check_definition("Nonsense", {})


def test_nothing_is_fetched(oracle: Oracle, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(oracle.document.definitions, "Away", {"$ref": "https://schema.invalid/a.json"})
    with pytest.raises(ValueError, match="nothing is ever fetched"):
        validator.__wrapped__(oracle.revision, "Away", True)


# --- the official examples ---


@pytest.mark.parametrize("name", EXAMPLES)
def test_official_example(modern: Oracle, name: str):
    modern.check_definition(name.partition("/")[0], EXAMPLES[name])


RESPONSES = {
    "CallTool": "tools/call",
    "Complete": "completion/complete",
    "Discover": "server/discover",
    "GetPrompt": "prompts/get",
    "ListPrompts": "prompts/list",
    "ListResourceTemplates": "resources/templates/list",
    "ListResources": "resources/list",
    "ListTools": "tools/list",
    "ReadResource": "resources/read",
    "SubscriptionsListen": "subscriptions/listen",
}
# The example lacks ttlMs and cacheScope, which its own schema demands.
DEFECTIVE_EXAMPLES = {"ReadResourceResultResponse/read-resource-result-response"}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if "ResultResponse/" in name])
def test_official_response_as_a_frame(modern: Oracle, name: str):
    frame = EXAMPLES[name]
    method = RESPONSES[name.partition("ResultResponse/")[0]]
    if name in DEFECTIVE_EXAMPLES:
        assert refuses(modern, frame, sender="server", answers=method).definition == "ReadResourceResult"
    else:
        modern.check_frame(frame, sender="server", answers=method)


# Questions inside `inputRequests` have no envelope.
CALLS = [name for name, value in EXAMPLES.items() if "method" in value and "jsonrpc" in value]


@pytest.mark.parametrize("name", CALLS)
def test_official_call_as_a_frame(modern: Oracle, name: str):
    frame = EXAMPLES[name]
    sender = "client" if frame["method"] in modern.requests("client") else "server"
    modern.check_frame(frame, sender=sender)


# --- calls ---


def test_minimal_calls_pass(handshake: Oracle):
    handshake.check_frame(request("ping"), sender="client")
    handshake.check_frame(request("ping"), sender="server")
    handshake.check_frame(request("tools/call", {"name": "echo"}, id="a"), sender="client")
    handshake.check_frame({"jsonrpc": "2.0", "method": "notifications/initialized"}, sender="client")


@pytest.mark.parametrize(
    ("frame", "path"),
    [
        (request("tools/call", {}), "/params"),
        (request("tools/call", {"name": 1}), "/params/name"),
        (request("tools/call", {"name": "a", "arguments": []}), "/params/arguments"),
        (request("tools/call"), ""),
        (request("tools/list", {"cursor": 7}), "/params/cursor"),
        (request("ping", id=None), "/id"),
        (request("ping", id=1.5), "/id"),
        (request("ping", id=True), "/id"),
        (request("ping", jsonrpc="1.0"), "/jsonrpc"),
        (request("ping") | {"params": []}, "/params"),
        (request("ping") | {"params": None}, "/params"),
        (request("ping") | {"method": 5}, "/method"),
        (request("logging/setLevel", {"level": "warn"}), "/params/level"),
        ({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}, "/params"),
        ({"jsonrpc": "2.0", "method": "notifications/cancelled"}, ""),
    ],
)
def test_bad_calls_fail(handshake: Oracle, frame: dict[str, Any], path: str):
    assert refuses(handshake, frame).path == path


@pytest.mark.parametrize(
    ("frame", "sender", "message"),
    [
        ([], "client", "batch"),
        ("ping", "client", "JSON object"),
        ({}, "client", "neither"),
        (request("ping", result={}), "client", "carries a result"),
        (request("notifications/initialized"), "client", "is a notification"),
        ({"jsonrpc": "2.0", "method": "tools/list"}, "client", "needs an id"),
        (request("roots/list"), "client", "not for the client"),
        (request("tools/list"), "server", "not for the server"),
        ({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, "client", "not for the client"),
    ],
)
def test_rules_beside_the_schema(handshake: Oracle, frame: Any, sender: str, message: str):
    assert message in refuses(handshake, frame, sender=sender).message


def test_methods_the_schema_does_not_know_need_only_the_envelope(handshake: Oracle):
    handshake.check_frame(request("shutdown"), sender="client")
    handshake.check_frame(request("acme/thing", {"x": [1]}), sender="client")
    handshake.check_frame({"jsonrpc": "2.0", "method": "acme/event"}, sender="server")
    refuses(handshake, request("acme/thing", id=None))
    refuses(handshake, request("acme/thing") | {"params": [1]})


def test_modern_calls(modern: Oracle):
    modern.check_frame(request("tools/list", {"_meta": META}), sender="client")
    assert refuses(modern, request("tools/list")).definition == "ListToolsRequest"
    assert refuses(modern, request("tools/list", {})).path == "/params"
    short = {name: META[name] for name in list(META)[:1]}
    assert refuses(modern, request("tools/list", {"_meta": short})).path == "/params/_meta"
    assert "no requests from the server" in refuses(modern, request("roots/list"), sender="server").message


def test_batches_belong_to_one_revision():
    frames = [request("ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    for revision in REVISIONS:
        oracle = Oracle.load(revision)
        if revision == "2025-03-26":
            oracle.check_frame(frames, sender="client")
            oracle.check_frame([answer(result={}), answer(error={"code": 1, "message": ""})], sender="server")
            refuses(oracle, [])
            refuses(oracle, [frames])
            refuses(oracle, [request("ping"), answer(result={})])
            refuses(oracle, [request("ping", id=None)])
        else:
            assert "no batches" in refuses(oracle, frames).message


# --- answers ---


def test_results(handshake: Oracle):
    text = {"content": [{"type": "text", "text": "4"}]}
    handshake.check_frame(answer(result=text), sender="server", answers="tools/call")
    handshake.check_frame(answer(result={}), sender="client", answers="ping")
    handshake.check_frame(answer(result={"anything": 1}), sender="server", answers="acme/thing")
    handshake.check_frame(answer(result={}), sender="server")
    assert refuses(handshake, answer(result={}), sender="server", answers="tools/call").path == "/result"
    wrong = {"content": [{"type": "text"}]}
    assert refuses(handshake, answer(result=wrong), sender="server", answers="tools/call").path == "/result/content/0"
    refuses(handshake, answer(result=[]), sender="server")
    refuses(handshake, answer(result=None), sender="server")
    refuses(handshake, answer(result={}, error={"code": 1, "message": ""}), sender="server")
    refuses(handshake, answer(result={}, id=None), sender="server")


def test_modern_results(modern: Oracle):
    how = {"sender": "server", "answers": "tools/call"}
    modern.check_frame(answer(result={"resultType": "complete", "content": []}), **how)
    modern.check_frame(answer(result={"resultType": "input_required", "requestState": "s"}), **how)
    modern.check_frame(answer(result={"resultType": "task", "taskId": "t"}), **how)
    refuses(modern, answer(result={"content": []}), **how)
    assert "unknown result type" in refuses(modern, answer(result={"resultType": "odd", "content": []}), **how).message
    assert "asks for nothing" in refuses(modern, answer(result={"resultType": "input_required"}), **how).message
    bad = {"resultType": "input_required", "inputRequests": {"a": {"method": "ping"}}}
    assert refuses(modern, answer(result=bad), **how).definition == "InputRequiredResult"
    never = {"resultType": "input_required", "requestState": "s"}
    assert "never asks" in refuses(modern, answer(result=never), sender="server", answers="tools/list").message


def test_a_call_run_as_a_task():
    oracle = Oracle.load("2025-11-25")
    task = {"taskId": "t", "status": "working", "createdAt": "now", "lastUpdatedAt": "now", "ttl": None}
    oracle.check_frame(answer(result={"task": task}), sender="server", answers="tools/call")
    broken = refuses(oracle, answer(result={"task": {}}), sender="server", answers="tools/call")
    assert broken.definition == "CreateTaskResult"


def test_errors(oracle: Oracle):
    oracle.check_frame(answer(error={"code": -32601, "message": "no"}), sender="server", answers="tools/call")
    oracle.check_frame(answer(error={"code": 7, "message": "no", "data": [1]}), sender="client")
    for error in (
        {"code": "1", "message": "no"},
        {"code": 1},
        {"message": "no"},
        {"code": 1.5, "message": ""},
        [],
        None,
    ):
        refuses(oracle, answer(error=error), sender="server")
    refuses(oracle, answer(error={"code": 1, "message": "no"}, id=None), sender="server", allow_missing_id=True)


def test_errors_without_id(oracle: Oracle):
    frame = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}
    oracle.check_frame(frame, sender="server", allow_missing_id=True)
    if oracle.revision in ("2025-11-25", MODERN_REVISION):
        oracle.check_frame(frame, sender="server")
    else:
        refuses(oracle, frame, sender="server")


def test_errors_whose_data_the_schema_fixes(modern: Oracle):
    data = {"requested": "2030-01-01", "supported": [MODERN_REVISION]}
    error = {"code": -32022, "message": "unsupported"}
    modern.check_frame(answer(error=error | {"data": data}), sender="server")
    assert refuses(modern, answer(error=error), sender="server").definition == "UnsupportedProtocolVersionError"
    older = Oracle.load("2025-11-25")
    refuses(older, answer(error={"code": -32042, "message": "open this"}), sender="server")


# --- repairs and formats ---


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_elicited_numbers_may_be_fractional(revision: str):
    oracle = Oracle.load(revision)
    oracle.check_definition("ElicitResult", {"action": "accept", "content": {"x": 3.14, "y": "a", "z": True}})
    oracle.check_definition("NumberSchema", {"type": "number", "minimum": 0.5, "maximum": 1.5})
    with pytest.raises(SchemaViolation):
        oracle.check_definition("ElicitResult", {"action": "accept", "content": {"x": {}}})
    many = {"action": "accept", "content": {"x": ["a"]}}
    if revision == "2025-06-18":
        with pytest.raises(SchemaViolation):
            oracle.check_definition("ElicitResult", many)
    else:
        oracle.check_definition("ElicitResult", many)


def test_resource_size_is_an_integer_everywhere(oracle: Oracle):
    resource = {"uri": "note://1", "name": "one"}
    oracle.check_definition("Resource", resource | {"size": 1})
    with pytest.raises(SchemaViolation):
        oracle.check_definition("Resource", resource | {"size": "1"})


def test_json_values_are_all_json_values(modern: Oracle):
    for value in (None, 1.5, True, "x", [None], {"a": {"b": 0.5}}):
        modern.check_definition("JSONValue", value)


def test_formats_can_be_left_out():
    image = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    read = request("resources/read", {"uri": "no uri"})
    strict, lax = Oracle.load("2025-06-18"), Oracle.load("2025-06-18", formats=False)
    lax.check_definition("ImageContent", image)
    lax.check_frame(read, sender="client")
    with pytest.raises(SchemaViolation):
        strict.check_definition("ImageContent", image)
    assert refuses(strict, read).path == "/params/uri"
