"""Keys of others: of many who need them one asks, and an issuer that is down is nobody's fault."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.auth.authorization_server.key_lookup import AskedKeys
from interlock.auth.authorization_server.responses import OAuthError
from interlock.auth.flow import Said
from interlock.auth.jose.jwks import KeySource
from interlock.wire.errors import RemoteError
from support.auth_tokens import jwk_of, signer

URL = "https://idp.example.com/keys"


class Idp:
    def __init__(self):
        self.asked, self.down, self.now = 0, False, 1000.0
        self.keys = AskedKeys(KeySource("https://idp.example.com", ("ES256",), lambda: self.now, url=URL))

    async def ask(self, step):
        self.asked += 1
        await asyncio.sleep(0)
        if self.down:
            raise RemoteError("down")
        return Said(status=200, body=json.dumps({"keys": [jwk_of(signer)]}).encode())

    def of(self, id):
        return self.keys.of(id, self.ask)


@pytest.mark.parametrize("id", ["k1", "unknown", None])
async def test_of_many_one_asks(id):
    idp = Idp()
    found = await asyncio.gather(*(idp.of(id) for _ in range(20)))
    assert idp.asked == 1 and all(len(keys) == 1 for keys in found)


async def test_one_that_is_down_is_asked_now_and_then_and_known_keys_go_on(caplog):
    idp = Idp()
    idp.down = True
    for _ in range(5):
        with pytest.raises(OAuthError) as caught:
            await idp.of("k1")
        assert caught.value.status == 503 and caught.value.error == "temporarily_unavailable"
    assert idp.asked == 1 and [record.message.count("down") for record in caplog.records] == [1]
    idp.down, idp.now = False, idp.now + 11
    assert await idp.of("k1") and idp.asked == 2
    idp.down, idp.now = True, idp.now + 700
    assert await idp.of("k1") and await idp.of("k1") and idp.asked == 3


async def test_of_many_who_wait_for_one_that_is_down_one_says_so(caplog):
    idp = Idp()
    idp.down = True
    found = await asyncio.gather(*(idp.of("k1") for _ in range(20)), return_exceptions=True)
    assert all(isinstance(each, OAuthError) for each in found)
    assert (idp.asked, len(caplog.records)) == (1, 1)
