"""A server written with the official Python SDK 2.x that asks in every way it knows; for our client to answer.

usage: mcp2_asking_server.py [--http]      (the address is said on stderr)

ts2_asking_server.mjs is its twin: same names, same questions, same answers.
"""

import socket
import sys
from typing import Annotated, Literal

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Elicit, ElicitationResult, ListRoots, MCPServer, Resolve, Sample
from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel, Field

server = MCPServer("asking peer", version="9.8", log_level="WARNING")


class Seat(BaseModel):
    seat: str


class Meal(BaseModel):
    meal: str


class Card(BaseModel):
    """A field of every kind that a form may have."""

    name: str = Field(min_length=2, description="As in the passport")
    colour: Literal["red", "green"]
    extras: list[Literal["wifi", "meal", "bag"]]
    age: int = Field(ge=0)
    weight: float = 70.5
    window: bool = True


def which_seat() -> Elicit[Seat]:
    return Elicit("Which seat?", Seat)


def which_meal(seat: Annotated[Seat, Resolve(which_seat)]) -> Elicit[Meal]:
    return Elicit(f"Which meal at {seat.seat}?", Meal)


def who_are_you() -> Elicit[Card]:
    return Elicit("Who are you?", Card)


def what_to_say() -> Sample:
    said = SamplingMessage(role="user", content=TextContent(text="Say hi"))
    return Sample([said], max_tokens=7, system_prompt="Be brief")


def which_roots() -> ListRoots:
    return ListRoots()


@server.tool()
async def ask_seat(answer: Annotated[ElicitationResult[Seat], Resolve(which_seat)]) -> str:
    return f"{answer.action} {answer.data.seat if answer.action == 'accept' else '-'}"


@server.tool()
async def ask_twice(
    flight: str, seat: Annotated[Seat, Resolve(which_seat)], meal: Annotated[Meal, Resolve(which_meal)]
) -> str:
    """The second question depends on the first answer: two rounds."""
    return f"{flight} {seat.seat} {meal.meal}"


@server.tool()
async def ask_together(
    seat: Annotated[Seat, Resolve(which_seat)],
    said: Annotated[CreateMessageResult, Resolve(what_to_say)],
    roots: Annotated[ListRootsResult, Resolve(which_roots)],
) -> str:
    """Three kinds of questions in one round."""
    places = " ".join(f"{root.uri}={root.name or '-'}" for root in roots.roots)
    return f"{seat.seat}, {said.model} {said.content.text} {said.stop_reason}, {places}"


@server.tool()
async def ask_card(card: Annotated[Card, Resolve(who_are_you)]) -> Card:
    return card


@server.tool()
async def ask_url(ctx: Context) -> str | InputRequiredResult:
    """No resolver asks for a page, so each era is served by hand."""
    if ctx.session.can_send_request:
        return (await ctx.elicit_url("Sign in", "https://example.com/sign-in", "e1")).action
    if ctx.input_responses is None:
        page = ElicitRequestURLParams(message="Sign in", url="https://example.com/sign-in", elicitation_id="e1")
        return InputRequiredResult(input_requests={"page": ElicitRequest(params=page)})
    return ctx.input_responses["page"].action


def asking_whom() -> InputRequiredResult:
    schema = {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}
    form = ElicitRequestFormParams(message="Whom?", requested_schema=schema)
    return InputRequiredResult(input_requests={"who": ElicitRequest(params=form)}, request_state="asked once")


# Prompts and resources have no resolvers: they ask by hand, in the stateless era only. A resource that asks has to be
# a template, because only templates are given the context.


@server.prompt()
async def greeting(ctx: Context) -> str | InputRequiredResult:
    if ctx.input_responses is None:
        return asking_whom()
    return f"Greet {ctx.input_responses['who'].content['who']}, {ctx.request_state}"


@server.resource("asking://{what}")
async def who(what: str, ctx: Context) -> str | InputRequiredResult:
    if ctx.input_responses is None:
        return asking_whom()
    return f"{what} {ctx.input_responses['who'].content['who']}, {ctx.request_state}"


async def serve_http() -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()  # who connects from now on is waited for, not refused
    print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    web = uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="warning"))
    await web.serve([listening])


if __name__ == "__main__":
    if "--http" in sys.argv:
        anyio.run(serve_http)
    else:
        server.run()
