"""Features that the newest revision keeps and no longer recommends: said once each, in the log and as a warning."""

from __future__ import annotations

import logging
import warnings

__all__ = ["DeprecatedFeature", "warn_of_deprecated"]

log = logging.getLogger("interlock.server")
_said: set[str] = set()

_INSTEAD = {
    "notifications/message": "log to stderr or to a telemetry system instead",
    "sampling/createMessage": "call a model from the server instead",
    "roots/list": "take folders as tool arguments or configuration instead",
}


class DeprecatedFeature(DeprecationWarning):
    """A feature of MCP that its newest revision has deprecated was used."""


def warn_of_deprecated(method: str) -> None:
    """Say it once per process and method (2026-07-28 basic/index#deprecated-features)."""
    if method in _said:
        return
    _said.add(method)
    told = f"{method} is deprecated in the client's protocol revision: {_INSTEAD[method]}"
    log.warning("! %s", told)
    try:
        warnings.warn(told, DeprecatedFeature, stacklevel=3)
    except DeprecatedFeature:
        pass  # where warnings are errors they are the author's business, not the failure of a client's call
