"""Prompts: a function of strings that gives messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ..wire.errors import InvalidParams
from ..wire.exchange import Exchange, Result
from ..wire.types.content import CONTENT_TYPES, TextContent
from ..wire.types.prompts import GetPromptParams, Prompt, PromptArgument, PromptMessage
from .calling import caller_of
from .context import Context
from .schema import read_signature
from .threads import Threads

__all__ = ["RegisteredPrompt"]


class RegisteredPrompt:
    """One prompt of a server."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        threads: Threads,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        signature = read_signature(function, Context)
        required = set(cast("list[str]", signature.schema.get("required", [])))
        self.takes_context = signature.context is not None
        self.names = signature.names
        self.noun = Prompt(
            name=name or cast(str, getattr(function, "__name__", "")),
            title=title or UNSET,
            description=description or (function.__doc__ or "").strip() or UNSET,
            arguments=[
                PromptArgument(name=each, required=each in required, **_words(signature.schema, each))
                for each in signature.names
            ]
            or UNSET,
            meta=dict(meta) if meta else UNSET,
        )
        self._arguments: type[Any] = signature.decoder.type
        self._call = caller_of(function, signature, threads)

    async def get(self, exchange: Exchange) -> Result:
        params = cast(GetPromptParams, exchange.params)
        try:
            arguments = msgspec.structs.asdict(msgspec.convert(params.arguments or {}, self._arguments, strict=False))
        except msgspec.ValidationError as error:
            told = f"Invalid arguments for {self.noun.name}: {str(error).replace('`', chr(39))}"
            raise InvalidParams(told) from None
        messages = _messages(await self._call(arguments, exchange))
        described = {"description": self.noun.description} if self.noun.description is not UNSET else {}
        return {**described, "messages": messages}


def _words(schema: dict[str, Any], name: str) -> dict[str, str]:
    """What `Annotated[str, msgspec.Meta(title=…, description=…)]` says about an argument."""
    member = schema["properties"][name]
    return {word: member[word] for word in ("title", "description") if isinstance(member.get(word), str)}


def _messages(value: Any) -> list[Any]:
    """What a prompt function returned: a text, a block, a message, or a list of these."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_message(each) for each in values]


def _message(value: Any) -> Any:
    if isinstance(value, str):
        return {"role": "user", "content": {"type": "text", "text": value}}
    if isinstance(value, CONTENT_TYPES):
        return {"role": "user", "content": value}
    message = msgspec.convert(value, PromptMessage)
    if isinstance(message.content, str):
        message.content = TextContent(text=message.content)
    return message
