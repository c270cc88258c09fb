"""How bytes move. What a carrier of your own needs is importable from here (docs/custom_transports.md)."""

from ..wire.errors import ConnectionClosed, ConnectionEnded, ConnectionLost, NotOpen, PeerClosed
from ..wire.framing import LineFramer, Oversized
from ..wire.limits import DEFAULT_LIMITS, Limits
from ..wire.link import Channel, Receiver
from .duplex import Duplex
from .serving import serve_channel

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
