"""Tools: a function, its schema, and what its return value becomes."""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import asdict

from ..revisions.param_headers import ParamHeader, read_param_headers
from ..wire.errors import InvalidParams, LocalError, Refused, ToolError
from ..wire.exchange import Exchange, Result
from ..wire.frames import encode
from ..wire.types.content import CONTENT_TYPES
from ..wire.types.tools import CallToolParams, Tool, ToolAnnotations
from .bounds import Concurrency
from .calling import ThreadPolicy, caller_of
from .context import Context
from .given_schema import Arguments, read_given
from .guards import Guards
from .schema import Signature, read_signature
from .threads import Threads

__all__ = ["RegisteredTool", "result_of_value"]

log = logging.getLogger("interlock.server")
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
        input_schema: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        park: bool = False,
        single_use: bool = False,
        timeout: float | None = None,
        concurrency: Concurrency | int | None = None,
        thread: ThreadPolicy | None = None,
    ) -> None:
        self.park, self.single_use = park, single_use
        signature, self._arguments = _signature(function, input_schema)
        self.name = name or cast(str, getattr(function, "__name__", ""))
        self.takes_context = signature.context is not None
        self.noun = Tool(
            name=self.name,
            title=title or UNSET,
            description=description or _first_paragraph(function) or UNSET,
            input_schema=signature.schema,
            annotations=annotations or UNSET,
            meta=dict(meta) if meta else UNSET,
        )
        self.param_headers = _param_headers(self.name, signature.schema)
        _check_name(self.name)
        call = caller_of(function, signature, threads, thread)
        self._call = (guards or Guards()).tool(call, function, self.name, timeout=timeout, concurrency=concurrency)

    async def call(self, exchange: Exchange) -> Result:
        params: CallToolParams = exchange.params
        raw = params.arguments if params.arguments is not UNSET else _NO_ARGUMENTS
        try:
            arguments = self._arguments(raw)
        except msgspec.ValidationError as error:
            return self._refuse_arguments(raw, error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidParams("Invalid params: arguments cannot be read") from None
        try:
            return result_of_value(await self._call(arguments, exchange))
        except ToolError as error:
            return _failed(str(error))
        except Refused:
            raise
        except (Exception, SystemExit, KeyboardInterrupt):
            return self._broken()

    def _refuse_arguments(self, raw: Raw, error: msgspec.ValidationError) -> Result:
        """Wrong values are for the model to mend (isError); arguments that are no object are a broken request."""
        if bytes(raw).lstrip()[:1] != b"{":
            raise InvalidParams("Invalid params: arguments must be an object") from None
        return _failed(f"Invalid arguments for {self.name}: {str(error).replace('`', chr(39))}")

    def _broken(self) -> Result:
        reference = secrets.token_hex(4)
        log.exception("! tool %s failed (reference %s)", self.name, reference)
        return _failed(f"The tool {self.name} failed unexpectedly (reference {reference})")


def _signature(function: Callable[..., Any], input_schema: Mapping[str, Any] | None) -> tuple[Signature, Arguments]:
    """What the function takes: by its type hints, or by the schema its author wrote."""
    if input_schema is not None:
        return read_given(function, Context, input_schema)
    signature = read_signature(function, Context)
    decode = signature.decoder.decode
    return signature, lambda raw: asdict(decode(raw))


def result_of_value(value: Any) -> Result:
    """What a tool returned, as the members of a CallToolResult."""
    if isinstance(value, str):
        return {"content": [{"type": "text", "text": value}]}
    if value is None:
        return {"content": []}
    if isinstance(value, CONTENT_TYPES):
        return {"content": [value]}
    items = cast("list[Any]", value) if isinstance(value, list | tuple) else []
    if items and all(isinstance(item, (str, *CONTENT_TYPES)) for item in items):
        return {"content": [{"type": "text", "text": item} if isinstance(item, str) else item for item in items]}
    encoded = encode(value)
    result: Result = {"content": [{"type": "text", "text": encoded.decode()}]}
    if isinstance(value, Mapping | msgspec.Struct) or dataclasses.is_dataclass(cast(Any, value)):
        result["structuredContent"] = Raw(encoded)  # the text is its twin for clients that know only text
    return result


def _failed(text: str) -> Result:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _param_headers(name: str, schema: dict[str, Any]) -> tuple[ParamHeader, ...]:
    """The parameters that callers over HTTP say in headers too; a client drops a tool that breaks a rule of theirs."""
    try:
        return read_param_headers(schema)
    except LocalError as error:
        raise LocalError(f"{name}: {error}") from None


def _first_paragraph(function: Callable[..., Any]) -> str:
    lines = (getattr(function, "__doc__", None) or "").strip().split("\n\n")[0].splitlines()
    return " ".join(line.strip() for line in lines)


def _check_name(name: str) -> None:
    """2025-11-25 server/tools#tool-names: 1 to 128 of letters, digits, `_`, `-`, `.`."""
    if (
        not 1 <= len(name) <= 128
        or not name.isascii()
        or not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()
    ):
        raise LocalError(f"{name!r} is no tool name: use 1 to 128 letters, digits, '_', '-' or '.'")
