"""transport/jsonrpc/batch.py: what an array of messages must not hold."""

import pytest

from interlock.transport.jsonrpc.batch import refused_in_batch
from interlock.wire.messages import read_frame


@pytest.mark.parametrize(
    ("method", "ids", "told"),
    [("tools/list", {2}, None), ("tools/list", {1, 2}, "has this id"), ("initialize", set(), "must not stand")],
)
def test_a_request_in_an_array(method, ids, told):
    refused = refused_in_batch(read_frame(b'{"jsonrpc":"2.0","id":1,"method":"%s"}' % method.encode()), ids)
    assert (refused is None) if told is None else (told in refused.message)
