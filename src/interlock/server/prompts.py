"""Prompts: a function of strings that gives messages.

What the function gives is checked before it goes out: a message of the wrong shape is a bug of the author, told as an
internal error with a reference, never as a broken result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import UNSET

from ..wire.errors import InternalError, InvalidParams, LocalError
from ..wire.exchange import Exchange, Result
from ..wire.types.common import Icon
from ..wire.types.content import Content
from ..wire.types.prompts import GetPromptParams, Prompt, PromptArgument, PromptMessage
from .arguments.coercion import coerced
from .content import BLOCK_TYPES, block_of
from .context import Context
from .execution.invoke import caller_of
from .execution.thread_pool import Threads
from .failures import failure_text
from .icons import checked_icons
from .schema.signature import docs_of, name_of, plain_name, read_signature
from .tools.generators import is_stream

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
        icons: Sequence[Icon] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        signature = read_signature(function, Context)
        required = set(cast("list[str]", signature.schema.get("required", [])))
        self.takes_context = signature.context is not None
        self.names = signature.names
        if is_stream(function):
            raise LocalError(f"{name_of(function)}: a prompt gives its messages at once: it cannot be a generator")
        named = name or plain_name(function)
        self.noun = Prompt(
            name=named,
            title=title or UNSET,
            description=description or docs_of(function).text or UNSET,
            arguments=[
                PromptArgument(name=each, required=each in required, **_words(signature.schema, each))
                for each in signature.names
            ]
            or UNSET,
            icons=checked_icons(icons, named),
            meta=dict(meta) if meta else UNSET,
        )
        self._signature = signature
        self._call = caller_of(function, signature, threads)

    def _arguments(self, given: dict[str, str]) -> dict[str, Any]:
        """All are texts. One that can be none is read as JSON, where that is what is wanted: `[1, 2]` for a list."""
        try:
            return self._signature.from_text(given)
        except msgspec.ValidationError:
            schema = self._signature.schema
            read = coerced(given, schema, schema.get("$defs", {}))
            if read == given:
                raise
            return self._signature.from_text(read)

    def _wrong(self, message: str, given: dict[str, str]) -> str:
        from .arguments.repair import told_within  # few prompts are asked for wrongly

        return told_within(message, given, self._signature)

    async def get(self, exchange: Exchange) -> Result:
        params = cast(GetPromptParams, exchange.params)
        try:
            arguments = self._arguments(params.arguments or {})
        except msgspec.ValidationError as error:
            wrong = self._wrong(str(error), params.arguments or {})
            raise InvalidParams(f"Invalid arguments for {self.noun.name}: {wrong}") from None
        try:
            messages = _messages(await self._call(arguments, exchange))
        except BaseException as error:  # SystemExit and KeyboardInterrupt too: one call fails, the server lives
            raise InternalError(failure_text(error, "prompt", self.noun.name)) from None
        described = {"description": self.noun.description} if self.noun.description is not UNSET else {}
        return {**described, "messages": messages}


def _words(schema: dict[str, Any], name: str) -> dict[str, str]:
    """What `Annotated[str, msgspec.Meta(title=…, description=…)]` says about an argument."""
    member = schema["properties"][name]
    return {word: member[word] for word in ("title", "description") if isinstance(member.get(word), str)}


def _messages(value: Any) -> list[Any]:
    """What a prompt function returned: a text, a block, a message, or a list of these."""
    values = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    return [_message(each) for each in values]


def _message(value: Any) -> Any:
    if isinstance(value, (str, *BLOCK_TYPES)):
        return {"role": "user", "content": _content(value)}
    if isinstance(value, PromptMessage):
        value = {"role": value.role, "content": value.content}  # made by hand: its members are read once more
    message = msgspec.convert(value, PromptMessage)
    return {"role": message.role, "content": _content(message.content)}


def _content(value: Any) -> Any:
    """The one block of a message, of whatever it was written as."""
    if isinstance(value, str):
        if not value.isascii():
            value.encode()  # half a surrogate pair is no text
        return {"type": "text", "text": value}
    return block_of(value if isinstance(value, BLOCK_TYPES) else msgspec.convert(value, Content))
