"""transport/stdio/fd_streams.py: bytes through descriptors, with room or without, until somebody goes."""

import asyncio
import errno
import os
import threading

from hypothesis import given
from hypothesis import strategies as st

from interlock.transport.stdio.fd_streams import FdReader, FdWriter
from support.doubles import turns
from support.properties import many


class Taken:
    """What a reader handed over."""

    def __init__(self):
        self.chunks, self.ends = [], 0
        self.ended = asyncio.Event()
        self.news = asyncio.Event()

    def data(self, chunk):
        self.chunks.append(chunk)
        self.news.set()

    def end(self):
        self.ends += 1
        self.ended.set()
        self.news.set()

    @property
    def bytes(self):
        return b"".join(self.chunks)

    async def until(self, size):
        while len(self.bytes) < size:
            self.news.clear()
            await self.news.wait()


def reader_of(fd):
    taken = Taken()
    reader = FdReader(fd, taken.data, taken.end)
    reader.start()
    return reader, taken


def writer_of(fd):
    broken = []
    return FdWriter(fd, broken.append), broken


def is_closed(fd):
    try:
        os.fstat(fd)
    except OSError as error:
        return error.errno == errno.EBADF
    return False


# --- reading ---


async def test_what_is_written_is_read_and_the_end_is_told_once():
    read, write = os.pipe()
    _, taken = reader_of(read)
    os.write(write, b"hello ")
    await taken.until(6)
    os.write(write, b"world")
    os.close(write)
    await taken.ended.wait()
    assert (taken.bytes, taken.ends) == (b"hello world", 1)
    assert is_closed(read)


async def test_a_closed_reader_hears_nothing_more():
    read, write = os.pipe()
    reader, taken = reader_of(read)
    reader.close()
    reader.close()
    assert is_closed(read)
    await turns()
    assert (taken.chunks, taken.ends) == ([], 0)
    os.close(write)


async def test_what_is_left_is_taken_when_the_writer_is_gone():
    read, write = os.pipe()
    reader, taken = reader_of(read)
    os.write(write, b"last words")
    os.close(write)
    reader.read_rest()
    assert taken.bytes == b"last words"
    reader.close()
    reader.read_rest()  # and after the end it is nothing


async def test_what_is_left_ends_where_nothing_is():
    read, write = os.pipe()
    reader, taken = reader_of(read)
    os.write(write, b"x")
    reader.read_rest()
    assert taken.bytes == b"x"
    reader.close()
    os.close(write)


async def test_a_reader_closed_by_what_it_read_stops():
    read, write = os.pipe()
    chunks = []

    def once(chunk):
        chunks.append(chunk)
        reader.close()

    reader = FdReader(read, once, lambda: chunks.append("end"))
    reader.start()
    os.write(write, b"x")
    while not chunks:
        await asyncio.sleep(0)
    await turns()
    assert chunks == [b"x"]
    os.close(write)


def join_readers():
    for thread in threading.enumerate():
        if thread.name == "interlock-reader":
            thread.join()


async def order_of_reading(size, times):
    """What a reader does with a peer that writes so many bytes again as soon as they were read, and when others run."""
    read, write = os.pipe()
    order = []

    def answered(chunk):
        if not order:
            asyncio.get_running_loop().call_soon(order.append, "others")
        order.append(len(chunk))
        if sum(each != "others" for each in order) < times:
            os.write(write, b"x" * size)

    reader = FdReader(read, answered, lambda: None)
    reader.start()
    os.write(write, b"x" * size)
    async with asyncio.timeout(30):
        while len(order) < times + 1:
            await asyncio.sleep(0)
    reader.close()
    os.close(write)
    return order


async def test_a_peer_with_much_under_way_is_read_again_before_others_get_their_turn():
    assert await order_of_reading(3000, 3) == [3000, 3000, 3000, "others"]


async def test_but_not_for_ever():
    order = await order_of_reading(4000, 20)
    assert order.index("others") == 5  # after some 16 KiB


async def test_a_descriptor_that_somebody_made_wait_never_holds_up_the_loop():
    read, write = os.pipe()
    chunks = []

    def taken(chunk):
        chunks.append(len(chunk))
        os.set_blocking(read, True)

    reader = FdReader(read, taken, lambda: None)
    reader.start()
    rescue = threading.Timer(20, os.write, (write, b"x"))  # else a loop that is held up would never end
    rescue.start()
    try:
        for count in (1, 2):
            os.write(write, b"x" * 3000)
            async with asyncio.timeout(30):
                while len(chunks) < count:
                    await asyncio.sleep(0)
        assert chunks == [3000, 3000]
    finally:
        rescue.cancel()
        rescue.join()
        reader.close()
        os.close(write)


async def test_a_peer_with_little_to_say_is_waited_for():
    assert await order_of_reading(100, 3) == [100, "others", 100, 100]


async def test_a_regular_file_is_read_by_a_thread(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"from a file")
    fd = os.open(path, os.O_RDONLY)
    _, taken = reader_of(fd)
    await taken.ended.wait()
    join_readers()
    assert (taken.bytes, taken.ends) == (b"from a file", 1)
    close_quietly(fd)


async def test_a_descriptor_read_by_a_thread_is_closed_at_its_end(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"x")
    fd = os.open(path, os.O_RDONLY)
    _, taken = reader_of(fd)
    await taken.ended.wait()
    join_readers()
    assert is_closed(fd)


async def test_a_thread_that_reads_stops_when_its_loop_is_gone(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"x")
    fd = os.open(path, os.O_RDONLY)

    def elsewhere():
        async def start():
            FdReader(fd, lambda chunk: None, lambda: None).start()

        asyncio.run(start())

    await asyncio.to_thread(elsewhere)
    join_readers()  # it would go on for ever, or fail the test as a thread left behind
    close_quietly(fd)


def close_quietly(fd):
    if not is_closed(fd):
        os.close(fd)


async def test_a_false_alarm_is_nothing():
    read, write = os.pipe()
    reader, taken = reader_of(read)
    reader._readable()  # woken, and there is nothing: not the end
    assert (taken.chunks, taken.ends) == ([], 0)
    reader.close()
    os.close(write)


async def test_an_error_of_reading_is_the_end():
    read, write = os.pipe()
    reader, taken = reader_of(read)
    folder = os.open("/", os.O_RDONLY)
    os.dup2(folder, read)  # reading a folder fails
    os.close(folder)
    reader._readable()
    assert taken.ends == 1
    os.close(write)


# --- writing ---


async def test_what_is_taken_in_one_turn_leaves_together():
    read, write = os.pipe()
    writer, broken = writer_of(write)
    assert [writer.write(b"abc"), writer.write(b"de"), writer.write(b"")] == [0, 3, 5]
    assert (writer.backlog, writer.written, writer.taken) == (5, 0, 5)
    await turns()
    assert (writer.backlog, writer.written) == (0, 5)
    assert os.read(read, 100) == b"abcde"
    writer.close()
    assert is_closed(write) and not broken
    os.close(read)


async def test_flushing_writes_at_once():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    writer.write(b"abc")
    writer.flush()
    assert os.read(read, 100) == b"abc"
    writer.flush()
    await turns()  # the flush that was scheduled finds nothing to do
    writer.close()
    writer.flush()
    os.close(read)


async def test_more_than_the_pipe_holds_goes_out_as_it_is_read():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    payload = os.urandom(3_000_000)
    writer.write(payload[:1_000_000])
    writer.flush()
    assert 0 < writer.written < 1_000_000
    writer.write(payload[1_000_000:])
    _, taken = reader_of(read)
    await writer.drain()
    assert (writer.written, writer.backlog) == (3_000_000, 0)
    writer.close()
    await taken.ended.wait()
    assert taken.bytes == payload


async def test_draining_waits_until_there_is_little_left():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    writer.write(b"x" * 500_000)
    waiting = asyncio.ensure_future(writer.drain(300_000))
    await turns()
    assert not waiting.done()
    _, taken = reader_of(read)
    await waiting
    assert writer.backlog <= 300_000
    await writer.drain()
    writer.close()
    await taken.ended.wait()


async def test_draining_nothing_is_done_at_once():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    await writer.drain()
    writer.write(b"x")
    await writer.drain(1)
    writer.close()
    await writer.drain()
    os.close(read)


async def test_closing_wakes_who_waits_for_room():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    writer.write(b"x" * 500_000)
    waits = [asyncio.ensure_future(writer.drain()) for _ in range(2)]
    await turns()
    waits[0].cancel()
    writer.close()
    writer.close()
    await waits[1]
    assert writer.write(b"more") == 500_000  # taken by nobody
    assert writer.taken == 500_000
    os.close(read)


async def test_a_reader_that_is_gone_breaks_the_writer_once():
    read, write = os.pipe()
    writer, broken = writer_of(write)
    os.close(read)
    writer.write(b"x")
    writer.write(b"y")
    await turns()
    writer.write(b"z")
    await turns()
    assert [error.errno for error in broken] == [errno.EPIPE]
    assert is_closed(write)


async def test_a_regular_file_is_written_directly(tmp_path):
    path = tmp_path / "output"
    writer, _ = writer_of(os.open(path, os.O_WRONLY | os.O_CREAT))
    writer.write(b"x" * 1_000_000)
    await turns()
    assert writer.backlog == 0
    writer.close()
    assert path.stat().st_size == 1_000_000


@many(30)
@given(st.lists(st.binary(max_size=5000), max_size=20), st.integers(1, 4096))
def test_any_pieces_arrive_as_one_stream(pieces, size):
    async def passes():
        read, write = os.pipe()
        os.set_blocking(read, False)
        writer, _ = writer_of(write)
        got = b""
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0)
            try:
                got += os.read(read, size)
            except BlockingIOError:
                pass
        _, taken = reader_of(read)
        await writer.drain()
        writer.close()
        await taken.ended.wait()
        assert got + taken.bytes == b"".join(pieces)

    asyncio.run(passes())


async def test_a_writer_without_a_reader_does_not_block_the_loop():
    read, write = os.pipe()
    writer, _ = writer_of(write)
    writer.write(b"x" * 10_000_000)
    await turns(5)
    assert writer.backlog > 0
    writer.close()
    os.close(read)
