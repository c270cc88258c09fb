"""One connection of the raw HTTP driver."""

import select
import socket

from driver import DriverError
from http_messages import is_complete

_READ_SIZE = 1 << 16


class Connection:
    """A socket and what has come of the response it waits for."""

    def __init__(self, port: int, seconds: float) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.came = b""

    def read(self) -> bytes | None:
        """The response, once all of it has come."""
        data = self.socket.recv(_READ_SIZE)
        if not data:
            raise DriverError("the server closed a connection")
        self.came += data
        if not is_complete(self.came):
            return None
        whole, self.came = self.came, b""
        return whole

    def is_closed(self) -> bool:
        """Has the server closed it, while nothing was under way? Then it can be read, and has nothing to say."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        while (response := self.read()) is None:
            pass
        return response
