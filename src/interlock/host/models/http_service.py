"""One model service over HTTP: a request goes out, server-sent events come back. What they mean, adapters know.

It goes through the same guarded object as everything else (web/outbound/client.py): the origin of the base URL and no
other, the key in headers that leave only for it, bounds on size and silence. A service that is busy is asked again
after the time it names, a few times; once a byte of an answer was passed on, nothing is asked twice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, cast

import msgspec

from ...web.outbound.client import Outbound
from ...web.outbound.endpoint import endpoint_of
from ...web.outbound.reply import Reply, plain_headers
from ...wire.errors import InterlockError, LocalError, MessageTooLarge
from ...wire.escaping import display
from ...wire.json.reader import read_json
from ...wire.limits import Limits
from ...wire.redaction import redact_secrets
from ...wire.sse import Event, EventParser
from .model import ModelBusy, ModelError, ModelRefused
from .parsing import json_of, members_of

__all__ = ["Service", "is_busy", "key_in"]

_LONGEST_EVENT = 4 * 1024 * 1024
_LONGEST_ANSWER = 64 * 1024 * 1024  # all events together: no model writes that much, and all of it is held
_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_BUSY_WORDS = ("overloaded_error", "rate_limit_error", "api_error", "timeout_error")
_LONGEST_PAUSE = 30.0  # seconds; a service that wants a longer one is not waited for
_FIRST_PAUSE = 0.5


class Service:
    """`tries` is how often one request is made at most, `silence` how long an answer may pause, in seconds."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        allowed_hosts: Iterable[str] = (),
        tries: int = 4,
        silence: float = 120.0,
    ) -> None:
        self._endpoint = endpoint_of(url, headers, allowed_hosts=allowed_hosts)
        self._tries, self._silence = tries, silence

    def __repr__(self) -> str:
        return f"<Service {self._endpoint.origin}>"

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[Event]:
        """The events of the answer to `body`."""
        data, begun = msgspec.json.encode(body), False
        for attempt in range(1, self._tries + 1):
            try:
                async with aclosing(self._once(data)) as events:
                    async for event in events:
                        if not begun and (busy := _busy_in(event)):
                            raise busy
                        begun = True
                        yield event
                return
            except ModelBusy as busy:
                if begun:  # what was passed on cannot be taken back
                    raise ModelError(str(busy)) from busy
                await self._pause(busy, attempt)

    async def _pause(self, busy: ModelBusy, attempt: int) -> None:
        seconds = _FIRST_PAUSE * 2 ** (attempt - 1) if busy.retry_after is None else busy.retry_after
        if attempt >= self._tries or seconds > _LONGEST_PAUSE:
            raise busy
        await asyncio.sleep(seconds * random.uniform(1.0, 1.25))

    async def _once(self, data: bytes) -> AsyncGenerator[Event]:
        out = Outbound(self._endpoint, Limits(message_bytes=_LONGEST_EVENT))
        headers = plain_headers(self._endpoint.headers, "text/event-stream") | {"Content-Type": "application/json"}
        try:
            async with aclosing(self._streamed(out, data, headers)) as events:
                async for event in events:
                    yield event
        except InterlockError:
            raise
        except TimeoutError:
            raise ModelBusy(f"{self._endpoint.origin} was silent for {self._silence:g} s") from None
        except Exception as error:
            told = out.as_ours(error, "the model", False)
            raise ModelBusy(str(told)) from error
        finally:
            await out.close()

    async def _streamed(self, out: Outbound, data: bytes, headers: dict[str, str]) -> AsyncGenerator[Event]:
        parser, taken = EventParser(_LONGEST_EVENT), 0
        async with asyncio.timeout(self._silence) as deadline, out.sent("POST", data, headers) as (reply, response):
            if reply.status == 200 and reply.media == "application/json":  # some do not stream: it comes at once
                body = await out.whole(response, "the model")
                deadline.reschedule(None)
                yield Event(data=body)
                return
            if reply.status != 200 or reply.media != "text/event-stream":
                raise _refusal(reply, await out.whole(response, "the model"))
            loop = asyncio.get_running_loop()
            async for chunk in response.content.iter_any():
                if (taken := taken + len(chunk)) > _LONGEST_ANSWER:
                    raise ModelError(f"the model sent more than {_LONGEST_ANSWER} bytes")
                for event in _parsed(parser, chunk):
                    deadline.reschedule(None)  # whoever reads may take its time
                    yield event
                deadline.reschedule(loop.time() + self._silence)


def _parsed(parser: EventParser, chunk: bytes) -> list[Event]:
    try:
        return parser.feed(chunk)
    except MessageTooLarge as error:
        raise ModelError(f"the model sent {error}") from None


def _busy_in(event: Event) -> ModelBusy | None:
    """Some say that they are busy only after they began to answer: nothing was passed on yet."""
    if event.name != "error":
        return None
    error = members_of(json_of(event.data), "error")
    return ModelBusy(f"the model said: {display(str(error.get('message')), 500)}") if is_busy(error) else None


def is_busy(error: Mapping[str, Any]) -> bool:
    """Whether it is worth another try, by what the service calls it."""
    return error.get("type") in _BUSY_WORDS


def _refusal(reply: Reply, body: bytes) -> ModelError:
    told = f"the model answered {reply.status}: {_words_in(body)}"
    if reply.status in _BUSY:
        return ModelBusy(told, _seconds(reply.retry_after))
    if reply.status == 200:
        return ModelError(f"the model answered with {display(reply.content_type, 60)!r} and not with events")
    refused = ModelRefused(told)
    refused.status = reply.status
    if reply.status in (401, 403):
        refused.hint = "look at the key of the model, and at what it may be used for"
    elif reply.status == 404:
        refused.hint = "look at the base URL and the name of the model"
    return refused


def _words_in(body: bytes) -> str:
    """What the service says about its error; the shape is common to those we speak to. Keys that it repeats are not."""
    try:
        found: Any = read_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    error: Any = cast("dict[str, Any]", found).get("error") if isinstance(found, dict) else None
    message: Any = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else body[:2_000].decode("utf-8", "replace")
    return display(redact_secrets(text), 500)


def _seconds(retry_after: str | None) -> float | None:
    """Dates are left alone: two clocks are needed to read them."""
    try:
        found = float(retry_after) if retry_after is not None else None
    except ValueError:
        return None
    return found if found is not None and 0 <= found < float("inf") else None


def key_in(env: Mapping[str, str], name: str, service: str) -> str:
    """The key of a service, from the environment."""
    if not (key := env.get(name, "").strip()):
        raise LocalError(f"there is no key for {service}: set {name}, or choose another model")
    return key
