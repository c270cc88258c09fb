"""web/outbound/pool.py: whoever forgets to close a client leaves no socket behind."""

import gc
import warnings

from interlock.web.outbound.client import Outbound
from interlock.web.outbound.endpoint import endpoint_of
from support.http_peer import HttpPeer, http
from support.http_session_talk import until


async def ask(out):
    async with out.sent("GET", None, {}) as (_, response):
        return await out.whole(response, "x")


async def test_one_that_nobody_closed_is_closed_by_the_loop_that_goes_on(caplog):
    async with HttpPeer(lambda r, s: http(200)) as peer:
        out = Outbound(endpoint_of(peer.url))
        await ask(out)
        sockets = [*out._opened().sockets]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del out
            gc.collect()
        await until(lambda: all(each.fileno() < 0 for each in sockets))
    assert sockets and not caplog.records  # the library complains in its own way otherwise
