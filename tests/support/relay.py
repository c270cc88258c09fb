"""A server process that only passes its stdin and stdout on to a socket, behind which a test plays the server."""

import os
import socket
import sys
import threading


def copy(source: int, target: int, done: object) -> None:
    while chunk := os.read(source, 65536):
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
    done()  # type: ignore[operator]


def main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    fd = connection.fileno()
    up = threading.Thread(target=copy, args=(0, fd, lambda: connection.shutdown(socket.SHUT_WR)), daemon=True)
    up.start()
    copy(fd, 1, lambda: os._exit(0))


if __name__ == "__main__":
    main()
