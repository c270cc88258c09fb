"""Tools: a function, its schemas, and one call of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...transport.http.param_headers import ParamHeader, read_param_headers
from ...wire.errors import InvalidParams, LocalError
from ...wire.exchange import BadArguments, Exchange, Result
from ...wire.types.common import Icon
from ...wire.types.tools import CallToolParams, Tool, ToolAnnotations
from ..arguments.decode import fitting
from ..arguments.errors import Arguments, Unmendable
from ..context import Context
from ..execution.concurrency import Concurrency
from ..execution.guards import Guards
from ..execution.invoke import ThreadPolicy, caller_of, takes_in_order
from ..execution.thread_pool import Threads
from ..failures import ends_the_run, failure_text
from ..icons import checked_icons
from ..schema.signature import Signature, docs_of, plain_name, read_signature
from .generators import is_stream, streamed
from .output_schema import OutputSchema, read_output
from .results import failed, finisher

__all__ = [
    "Asks",
    "RegisteredTool",
    "LONGEST_TOOL_NAME",
    "check_tool_name",
]


LONGEST_TOOL_NAME = 128


def check_tool_name(name: str) -> None:
    plain = name.replace("_", "a").replace("-", "a").replace(".", "a")
    if not 1 <= len(name) <= LONGEST_TOOL_NAME or not name.isascii() or not plain.isalnum():
        told = f"use 1 to {LONGEST_TOOL_NAME} letters, digits, '_', '-' or '.'"
        raise LocalError(f"{name!r} is no tool name: " + (f"say name=, and {told}" if name == "<lambda>" else told))


Asks = Literal["replay", "park"]
"""How a stateless client is asked: the function runs again with the answers, or its run waits in memory."""
_NO_ARGUMENTS = Raw(b"{}")


class RegisteredTool:
    """One tool of a server, ready to be called."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        threads: Threads,
        guards: Guards | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: OutputSchema | None = None,
        meta: Mapping[str, Any] | None = None,
        asks: Asks = "replay",
        single_use: bool = False,
        timeout: float | None = None,
        concurrency: Concurrency | int | None = None,
        thread: ThreadPolicy | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        signature, arguments = _signature(function, input_schema)
        self.name = name or plain_name(function)
        self.takes_context = signature.context is not None
        self.scopes = _checked_scopes(self.name, scopes)
        self.park, self.single_use = _parks(self.name, asks), single_use
        streams = is_stream(function)
        output = read_output(function, output_schema, streams=streams)
        self.embeds = output.embeds
        self.noun = Tool(
            name=self.name,
            title=title or UNSET,
            description=description or docs_of(function).text or UNSET,
            input_schema=signature.schema,
            output_schema=output.schema if output.schema is not None else UNSET,
            annotations=_checked_annotations(self.name, annotations),
            icons=checked_icons(icons, self.name),
            meta=dict(meta) if meta else UNSET,
        )
        self.param_headers = _param_headers(self.name, signature.schema)
        self._finish = finisher(self.name, output.schema, output.check, output.fill)
        check_tool_name(self.name)
        run = streamed(function, signature, on_loop=thread == "loop") if streams else (function, signature)
        call = caller_of(*run, threads, thread)
        self._call = (guards or Guards()).tool(call, function, self.name, timeout=timeout, concurrency=concurrency)
        direct = self._call is call and input_schema is None and takes_in_order(function, signature.names)
        self._direct = function if direct else None
        """Called as it is where nothing stands between: no bounds, no context, no other schema than its own."""
        self._arguments = fitting(signature, in_order=True) if direct else arguments

    async def call(self, exchange: Exchange) -> Result:
        params: CallToolParams = exchange.params
        raw = params.arguments if params.arguments is not UNSET else _NO_ARGUMENTS
        decoded, direct, finish = self._arguments, self._direct, self._finish
        try:
            arguments = decoded(raw)
        except Unmendable as error:
            return self._refuse_arguments(error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            if bytes(raw).strip() == b"null":  # written out where there are none
                exchange.params = msgspec.structs.replace(params, arguments=UNSET)
                return await self.call(exchange)
            wrong = "cannot be read" if bytes(raw).lstrip()[:1] == b"{" else "must be an object"
            raise InvalidParams(f"Invalid params: arguments {wrong}") from None
        except BaseException as error:  # of a class of the author's, which looks at what it is made of
            return failed(failure_text(error, "tool", self.name))
        try:
            return finish(await (direct(*arguments) if direct is not None else self._call(arguments, exchange)))
        except BaseException as error:  # SystemExit and KeyboardInterrupt too: one call fails, the server lives
            if ends_the_run(error):
                raise  # as it came: each question of a stateless client ends a run, and so goes through here
            return failed(failure_text(error, "tool", self.name))

    def _refuse_arguments(self, error: Unmendable) -> Result:
        """Wrong values are for the model to mend (isError); arguments that are no object are a broken request."""
        told = "\n".join([f"Invalid arguments for {self.name}:", *(f"- {line}" for line in error.lines)])
        return BadArguments(failed(told))


def _signature(function: Callable[..., Any], input_schema: Mapping[str, Any] | None) -> tuple[Signature, Arguments]:
    """What the function takes: by its type hints, or by the schema its author wrote."""
    if input_schema is not None:
        from ..arguments.explicit_schema import (
            read_given,  # most authors write no schema, and their servers start without it
        )

        return read_given(function, Context, input_schema)
    signature = read_signature(function, Context, closed=True)
    return signature, fitting(signature)


def _checked_scopes(name: str, scopes: Sequence[str]) -> tuple[str, ...]:
    if not scopes:
        return ()
    from ...auth.www_authenticate import scopes_in  # few tools need any

    found = tuple(scopes)
    if isinstance(scopes, str) or scopes_in(found) != found:
        raise LocalError(f"{name}: scopes is a list of words without spaces, each once")
    return found


def _parks(name: str, asks: str) -> bool:
    if asks not in ("replay", "park"):
        raise LocalError(f"{name}: asks={asks!r:.40}: 'replay' or 'park'")
    return asks == "park"


def _checked_annotations(name: str, annotations: ToolAnnotations | None) -> ToolAnnotations | UnsetType:
    """Hints are booleans (schema.ts#ToolAnnotations); nouns are not checked when they are made.

    One that is misspelt is refused: clients decide by them what to ask their users about.
    """
    if not annotations:
        return UNSET
    try:
        given = msgspec.to_builtins(annotations)
        found = msgspec.convert(given, ToolAnnotations)
    except (msgspec.ValidationError, TypeError) as error:
        raise LocalError(f"{name}: annotations: {error}") from None
    if unknown := given.keys() - set(ToolAnnotations.__struct_encode_fields__):
        told = "say ToolAnnotations(read_only_hint=…, destructive_hint=…, idempotent_hint=…, open_world_hint=…)"
        raise LocalError(f"{name}: annotations: there is no {min(unknown)!r:.60}: {told}")
    return found


def _param_headers(name: str, schema: dict[str, Any]) -> tuple[ParamHeader, ...]:
    """The parameters that callers over HTTP say in headers too; a client drops a tool that breaks a rule of theirs."""
    try:
        return read_param_headers(schema)
    except LocalError as error:
        raise LocalError(f"{name}: {error}") from None
