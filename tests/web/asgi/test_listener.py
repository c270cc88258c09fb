"""Which listening socket of this process belongs to a request, and what happens once it closes."""

import asyncio
import os
import socket

from interlock.web.asgi.listener import ListenerWatch, find_listener


def test_a_listener_is_found_by_its_port_whatever_address_a_connection_has():
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
        assert find_listener(("127.0.0.1", port)) == find_listener(("10.1.2.3", str(port))) == listener.fileno()
    assert find_listener(("127.0.0.1", port)) is None


def test_a_connection_is_not_a_listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = listener.getsockname()
        with socket.create_connection(where):
            accepted, _ = listener.accept()
            listener.close()
            assert find_listener(where) is None
            accepted.close()


def test_a_unix_socket_is_found_by_its_path(tmp_path):
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert find_listener((path, None)) is None, "it is bound and does not listen yet"
        listener.listen()
        assert find_listener((path, None)) == listener.fileno()
        assert find_listener((path + "2", None)) is find_listener(("127.0.0.1", 1)) is None


def test_looking_leaves_no_descriptor_open():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = os.listdir("/dev/fd")
        find_listener(listener.getsockname())
        assert len(os.listdir("/dev/fd")) == len(before)


async def test_the_end_of_a_copy_of_the_socket_is_not_the_end():
    closed = asyncio.Event()
    first = socket.create_server(("127.0.0.1", 0))
    second = first.dup()
    where = first.getsockname()
    servers = [where]
    watch = ListenerWatch(lambda: servers, closed.set)
    assert watch.locate(where)
    watch.start(asyncio.get_running_loop())
    first.close()
    looked = asyncio.Event()
    watch.locate = lambda server, locate=watch.locate: (looked.set(), locate(server))[1]
    await looked.wait()
    assert not closed.is_set()
    second.close()
    await closed.wait()


async def test_nothing_is_watched_while_no_request_lasts():
    looked = asyncio.Event()

    def none():
        looked.set()
        return ()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        watch = ListenerWatch(none, lambda: None)
        watch.locate(listener.getsockname())
        loop = asyncio.get_running_loop()
        watch.start(loop)
        await looked.wait()
        looked.clear()
        watch.start(loop)  # it had stopped looking: this begins again
        await looked.wait()
