"""wire/channel.py: every carrier of ours offers what the protocols ask for."""

import inspect

import pytest

from interlock.transport.jsonrpc.connection import Duplex
from interlock.transport.memory import MemoryChannel
from interlock.transport.stdio.child_process import ChildChannel
from interlock.transport.stdio.line_channel import LineChannel
from interlock.wire import channel
from interlock.wire.channel import Channel, Link, Outlet, Patience, Receiver


def members(protocol: type) -> dict[str, object]:
    return {name: value for name, value in vars(protocol).items() if not name.startswith("_")}


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (ChildChannel, Channel),
        (LineChannel, Channel),
        (MemoryChannel, Channel),
        (Duplex, Receiver),
        (Duplex, Link),
        (Duplex, Outlet),
    ],
)
def test_a_carrier_has_every_member_of_its_protocol(kind, protocol):
    for name, wanted in members(protocol).items():
        found = inspect.getattr_static(kind, name)
        assert isinstance(found, property) == isinstance(wanted, property), name
        if isinstance(wanted, property):
            continue
        assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(wanted), name
        wanted_names = list(inspect.signature(wanted).parameters)
        assert set(wanted_names) <= set(inspect.signature(found).parameters), name


def test_patience_has_both_deadlines_unless_told():
    # Every request has a timeout (basic/lifecycle#timeouts), and progress may not extend it for ever.
    assert Patience().idle and Patience().total
    assert Patience().idle < Patience().total
    assert Patience(idle=None, total=None) == Patience(total=None, idle=None)


def test_patience_cannot_be_changed():
    with pytest.raises(AttributeError):
        Patience().idle = 3


def test_everything_public_is_there():
    assert all(hasattr(channel, name) for name in channel.__all__)
