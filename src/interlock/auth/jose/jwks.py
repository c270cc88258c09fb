"""Where the keys of an issuer come from: given once, or published by it and looked up again when it changes them.

A token that names an unknown key makes us look, but not more often than every few seconds: else anybody could make us
ask the issuer as often as he likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...wire.errors import AuthorizationFailed
from ..discovery import metadata_of
from ..flow import Ask, Flow, Said
from .jwk import PublicKey, keys_in, read_set

__all__ = ["KeySource"]

_FRESH = 600.0  # seconds that a set is used without a look at the newest
_APART = 10.0  # seconds between two looks, whatever tokens say
_STALE = 3600.0  # seconds that a set is used while its issuer cannot be asked; then nobody gets in


class KeySource:
    """The keys of one issuer. Who drives its flows asks one question at a time, and begins anew after waiting."""

    def __init__(
        self,
        issuer: str,
        algorithms: Iterable[str],
        clock: Callable[[], float],
        *,
        url: str | None = None,
        given: Iterable[Mapping[str, Any]] | None = None,
    ) -> None:
        self._issuer, self._algorithms, self._clock, self._url = issuer, tuple(algorithms), clock, url
        self._given = None if given is None else keys_in(given, self._algorithms)
        self._keys: tuple[PublicKey, ...] = ()
        self._looked = self._found = float("-inf")

    def held(self, id: str | None) -> tuple[PublicKey, ...] | None:
        """The keys to check a token of this key with; None where they have to be looked up first."""
        if self._given is not None:
            return self._given
        now = self._clock()
        known = id is None or any(key.id == id for key in self._keys)
        if now - self._looked < _APART or (known and now - self._found < _FRESH):
            return self._keys if now - self._found < _STALE else ()
        return None

    def look(self, id: str | None) -> Flow[tuple[PublicKey, ...]]:
        """The same, looked up where that is due. `AuthorizationFailed` where there is nothing to check with."""
        held = self.held(id)
        if held is None:
            try:
                yield from self._fetch()
            except Exception:
                self._looked = self._clock()
                if self._looked - self._found >= _STALE:
                    raise  # what was known is too old to go on with
            held, self._looked = self._keys, self._clock()
        if not held and self._given is None:
            raise AuthorizationFailed("the keys of the issuer are not to be had")
        return held

    def _fetch(self) -> Flow[None]:
        if self._url is None:
            found = yield from metadata_of(self._issuer, policy="typed")
            if found.jwks_uri is None:
                raise AuthorizationFailed("the metadata of the issuer name no keys")
            said: Said = yield Ask(url=found.jwks_uri)
        else:
            said = yield Ask(url=self._url, policy="typed")
        keys = read_set(said.body, self._algorithms) if said.status == 200 else None
        if not keys:
            raise AuthorizationFailed(f"the keys of the issuer are not to be had (HTTP status {said.status})")
        self._keys, self._found = keys, self._clock()
