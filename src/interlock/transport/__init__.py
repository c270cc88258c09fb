"""How bytes move. What a carrier of your own needs is importable from here (docs/custom_transports.md)."""

from ..wire.channel import Channel, Receiver
from ..wire.errors import ConnectionClosed, ConnectionEnded, ConnectionLost, NotOpen, PeerClosed
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.line_framing import LineFramer, Oversized
from .jsonrpc.connection import Duplex
from .jsonrpc.serve import serve_channel

__all__ = [
    "Channel",
    "Receiver",
    "serve_channel",
    "Duplex",
    "LineFramer",
    "Oversized",
    "Limits",
    "DEFAULT_LIMITS",
    "ConnectionEnded",
    "ConnectionClosed",
    "ConnectionLost",
    "PeerClosed",
    "NotOpen",
]
