"""Session ids, whose form tells whether another process of the same server has issued one.

Several workers without shared state each know their own sessions only, so a client that reaches another worker gets a
404 for a session that is alive. Its form tells that case from a session that has ended.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from base64 import urlsafe_b64encode

from ....web.asgi.message import HttpRefusal
from .session_headers import UNKNOWN

__all__ = ["SessionIds"]

log = logging.getLogger("interlock.http")
_RANDOM_BYTES, _MARK_BYTES = 32, 6  # 256 bits cannot be guessed; a mark of 6 bytes is 8 characters
_RANDOM_LENGTH, _MARK_LENGTH = 43, 8
_OF_ANOTHER_PROCESS = HttpRefusal.saying(
    404,
    "There is no such session in this process: another process of this server has issued this id. Several workers "
    "must share their sessions (state= in server.asgi or server.run, --state on the command line); after a restart "
    "without it, sessions have ended. Begin again with initialize",
)


class SessionIds:
    """Those of one endpoint. The marks in an id only choose the words of a 404: they grant nothing.

    Both are derived from the random part of the id, so two ids do not show whether one process has issued them.
    """

    def __init__(self, endpoint: str, *, shared: bool) -> None:
        self._endpoint_key = hashlib.blake2b(endpoint.encode()).digest()
        self._shared = shared
        self._process_key, self._process = b"", -1
        self._is_reported = False

    def issue(self) -> str:
        """256 random bits in visible ASCII (#session-management asks for that, and for ids that are not guessed)."""
        random = secrets.token_urlsafe(_RANDOM_BYTES)
        return random + _mark(self._endpoint_key, random) + _mark(self._key(), random)

    def refuse(self, id: str) -> HttpRefusal:
        """404 for an id that was not found, with the reason as far as its form tells."""
        if self._shared or not self._is_of_another_process(id):
            return UNKNOWN
        if not self._is_reported:
            self._is_reported = True
            log.warning(
                "! a session id that another process of this server has issued was refused: if several workers serve "
                "it, pass state= to all of them (after a restart this is expected); said once"
            )
        return _OF_ANOTHER_PROCESS

    def _is_of_another_process(self, id: str) -> bool:
        random, marks = id[:_RANDOM_LENGTH], id[_RANDOM_LENGTH:]
        if len(marks) != 2 * _MARK_LENGTH or not id.isascii():
            return False
        endpoint, process = marks[:_MARK_LENGTH], marks[_MARK_LENGTH:]
        return endpoint == _mark(self._endpoint_key, random) and process != _mark(self._key(), random)

    def _key(self) -> bytes:
        """Of this process: workers may have been forked from one that has made the application."""
        if self._process != os.getpid():
            self._process_key, self._process = secrets.token_bytes(32), os.getpid()
        return self._process_key


def _mark(key: bytes, random: str) -> str:
    digest = hashlib.blake2b(random.encode(), key=key, digest_size=_MARK_BYTES).digest()
    return urlsafe_b64encode(digest).decode()
