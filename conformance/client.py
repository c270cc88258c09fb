"""The client under test of the official suite: `python conformance/client.py URL`.

The suite says by MCP_CONFORMANCE_SCENARIO what to do, by MCP_CONFORMANCE_PROTOCOL_VERSION which revision to speak, and
by MCP_CONFORMANCE_CONTEXT (JSON, in some scenarios) with what. It ends with 0 when everything that was asked of it
could be done; the suite's server judges how.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import yarl

from interlock import Client, ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
from interlock.auth.client.providers import Plan
from interlock.revisions.table import REVISIONS

SECONDS = 20.0  # for the whole scenario: the suite would wait without end


# --- what the suite's servers may ask --------------------------------------------------------------


def answer_elicitation(params: dict[str, Any]) -> dict[str, Any]:
    """A user who takes every default and says yes to the rest."""
    properties = params.get("requestedSchema", {}).get("properties", {})
    return {"action": "accept", "content": {name: value_for(part) for name, part in properties.items()}}


def answer_sampling(params: dict[str, Any]) -> dict[str, Any]:
    content = {"type": "text", "text": "This is a sampled answer."}
    return {"role": "assistant", "content": content, "model": "none", "stopReason": "endTurn"}


def value_for(schema: dict[str, Any]) -> Any:
    """Some value a schema allows: its default, its first choice, or one of its type."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    samples = {"string": "test", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return samples.get(schema.get("type", "string"), "test")


def arguments_for(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value_for(part) for name, part in schema.get("properties", {}).items()}


# --- the scenarios -------------------------------------------------------------------------------------------


async def only_list(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()


async def introduce_ourselves(client: Client, context: dict[str, Any]) -> None:
    """The server of this scenario declares nothing, so nothing is asked of it where a handshake negotiates that."""
    if client.capabilities.can("tools"):
        await client.list_tools()


async def add_numbers(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def every_kind_of_call(client: Client, context: dict[str, Any]) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, arguments_for(tool.input_schema))
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name, {each.name: "test" for each in prompt.arguments or []})


async def calls_of_the_context(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def every_tool_that_is_valid(client: Client, context: dict[str, Any]) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, arguments_for(tool.input_schema))


async def echo_a_schema(client: Client, context: dict[str, Any]) -> None:
    schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


async def answer_in_rounds(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


async def reconnect(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection")


async def take_defaults(client: Client, context: dict[str, Any]) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


SCENARIOS: dict[str, Callable[[Client, dict[str, Any]], Awaitable[None]]] = {
    "initialize": introduce_ourselves,
    "tools_call": add_numbers,
    "request-metadata": add_numbers,
    "sse-retry": reconnect,
    "elicitation-sep1034-client-defaults": take_defaults,
    "json-schema-2020-12-preservation": echo_a_schema,
    "json-schema-ref-no-deref": only_list,
    "http-standard-headers": every_kind_of_call,
    "http-custom-headers": calls_of_the_context,
    "http-invalid-tool-headers": every_tool_that_is_valid,
    "sep-2322-client-request-state": answer_in_rounds,
}


async def twice(client: Client, context: dict[str, Any]) -> None:
    """List and call what is there, then list again: some servers change their mind about a token in between."""
    for tool in await client.list_tools():
        await client.call_tool(tool.name, arguments_for(tool.input_schema))
    await client.list_tools()


# --- who we are ----------------------------------------------------------------------------------------------

REDIRECT = "http://localhost:33418/callback"  # where nobody listens: the suite's servers answer with it at once


async def browse(url: str) -> str:
    """A user who agrees to everything: the page redirects at once, and nobody follows."""
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(yarl.URL(url, encoded=True), allow_redirects=False) as response,
    ):
        return response.headers["Location"]


def plan_for(scenario: str, given: dict[str, Any]) -> Plan | None:
    if not scenario.startswith("auth/"):
        return None
    if scenario == "auth/client-credentials-jwt":
        key, algorithm = given["private_key_pem"], given["signing_algorithm"]
        return ClientCredentials(given["client_id"], private_key=key, algorithm=algorithm)
    if scenario == "auth/client-credentials-basic":
        return ClientCredentials(given["client_id"], given["client_secret"])
    if scenario == "auth/enterprise-managed-authorization":
        return EnterpriseManaged(
            given["client_id"],
            given["client_secret"],
            idp_token_endpoint=given["idp_token_endpoint"],
            idp_client_id=given["idp_client_id"],
            id_token=given["idp_id_token"],
        )
    if scenario == "auth/wif-jwt-bearer":
        return WorkloadIdentity(given["valid_jwt"], client_id=given["client_id"])
    known = {name: given[name] for name in ("client_id", "client_secret", "issuer") if name in given}
    if scenario == "auth/offline-access-scope":
        return OAuth(login=browse, redirect_uri=REDIRECT, offline=True)  # registers itself: a document says no grants
    return OAuth(login=browse, redirect_uri=REDIRECT, client_metadata_url=CLIENT_DOCUMENT, **known)


CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"


async def run(url: str, scenario: str, version: str, context: dict[str, Any]) -> None:
    """One scenario. A server may answer with an older revision than the one the suite names, never with a newer one."""
    spoken = tuple(name for name in REVISIONS if name <= version)
    client = Client(
        url,
        auth=plan_for(scenario, context),
        revision=spoken,
        name="interlock-conformance",
        elicit=answer_elicitation,
        sample=answer_sampling,
        roots=["file:///workspace"],
    )
    async with asyncio.timeout(SECONDS), client:
        await SCENARIOS.get(scenario, twice)(client, context)


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: client.py URL", file=sys.stderr)
        return 2
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    if scenario not in SCENARIOS and not scenario.startswith("auth/"):
        print(f"there is no scenario {scenario!r} here", file=sys.stderr)
        return 2
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") or max(REVISIONS)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    asyncio.run(run(sys.argv[1], scenario, version, context))
    return 0


if __name__ == "__main__":
    sys.exit(main())
