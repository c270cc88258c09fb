"""Tools whose arguments are judged: by type hints, by schemas of their author, in two dialects."""

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import Server

server = Server("schemas", version="1")
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
KEYWORDS: dict[str, Any] = {
    "type": "object",
    "$defs": {"place": {"$anchor": "place", "type": "string", "minLength": 1}},
    "properties": {"from": {"$ref": "#place"}, "to": {"$ref": "#/$defs/place"}, "via": {"type": "array"}},
    "allOf": [{"anyOf": [{"required": ["from"]}, {"required": ["to"]}]}],
    "if": {"required": ["via"]},
    "then": {"required": ["from", "to"]},
    "else": {"not": {"required": ["stops"]}},
    "dependentRequired": {"stops": ["via"]},
    "unevaluatedProperties": {"type": "integer"},
}


@dataclass
class Passenger:
    name: str
    age: Annotated[int, Meta(ge=0)] = 30


@server.tool
async def book(
    flight: Annotated[str, Meta(pattern="^[A-Z]{2} [0-9]+$", examples=["OS 1"])],
    day: datetime.date,
    seats: Annotated[int, Meta(ge=1, le=9)] = 1,
    tier: Literal["first", "economy"] = "economy",
    passengers: list[Passenger] = [],  # noqa: B006 - never shared
    dry_run: bool = False,
) -> str:
    """Book a flight.

    Args:
        day: When it leaves.
    """
    fits = isinstance(seats, int) and 1 <= seats <= 9 and isinstance(day, datetime.date)
    fits = fits and all(isinstance(each, Passenger) and each.age >= 0 for each in passengers)
    return f"{flight} {day} {seats} {tier} {dry_run}" if fits else "WRONG"


@server.tool
async def nothing() -> str:
    """Take no arguments."""
    return "nothing"


@server.tool(input_schema=KEYWORDS)
async def route(arguments: dict) -> str:
    """Every kind of keyword."""
    return "routed"


@server.tool(input_schema={"type": "object", "properties": {"pair": {"prefixItems": [{"type": "string"}, False]}}})
async def newest(arguments: dict) -> str:
    """`prefixItems` is a word of 2020-12."""
    return "fits"


@server.tool(
    input_schema={
        "$schema": DRAFT_07,
        "type": "object",
        "properties": {"pair": {"items": [{"type": "string"}, {"type": "integer"}], "prefixItems": [False]}},
    }
)
async def older(arguments: dict) -> str:
    """`items` may be an array in draft-07, and `prefixItems` is no word of it."""
    return "fits"


@server.tool
async def numbers() -> list[int]:
    """Give an array."""
    return [1, 2]
