"""transport/stdio/line_channel.py: messages as lines over two descriptors."""

import asyncio
import os
import socket

import pytest

from interlock.transport.stdio.line_channel import LineChannel
from interlock.wire.errors import ConnectionClosed, ConnectionLost, NotOpen, PeerClosed
from interlock.wire.limits import Limits
from support.doubles import Receiver, turns
from support.virtual_time import virtual_time


async def opened(limits=None, **options):
    """A channel, whom it tells, and the other end of its streams."""
    ours, theirs = socket.socketpair()
    fd = ours.detach()
    channel = LineChannel(fd, os.dup(fd), limits or Limits(), **options)
    heard = Receiver()
    await channel.open(heard)
    theirs.setblocking(False)
    return channel, heard, theirs


async def test_each_line_is_a_message():
    channel, heard, theirs = await opened()
    theirs.send(b"one\ntwo\nthr")
    await heard.until(lambda: len(heard.messages) == 2)
    theirs.send(b"ee\n")
    await heard.until(lambda: len(heard.messages) == 3)
    assert heard.messages == [b"one", b"two", b"three"]
    await channel.close()
    theirs.close()


async def test_a_receiver_that_fails_does_not_stop_the_writing(caplog):
    channel, heard, theirs = await opened()

    def broken(message):
        channel.send(b"said before")
        raise RuntimeError("a bug")

    heard.received = broken
    unhandled = []
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: unhandled.append(context["exception"]))
    theirs.send(b"one\n")
    said = await loop.sock_recv(theirs, 100)
    loop.set_exception_handler(before)
    assert said == b"said before\n" and [str(error) for error in unhandled] == ["a bug"]
    channel.send(b"after")
    assert await loop.sock_recv(theirs, 100) == b"after\n"
    await channel.close()
    theirs.close()


async def test_blank_lines_are_no_messages():
    channel, heard, theirs = await opened()
    theirs.send(b"\n  \n\t\r\n\r\nreal\n")
    await heard.until(lambda: heard.messages)
    assert heard.messages == [b"real"]
    await channel.close()
    theirs.close()


async def test_a_line_over_the_limit_is_told_and_the_next_one_read():
    channel, heard, theirs = await opened(Limits(message_bytes=10))
    theirs.send(b"0123456789abc\nnext\n")
    await heard.until(lambda: heard.messages)
    assert heard.too_long == [(b"0123456789abc", 13)]
    assert heard.messages == [b"next"]
    await channel.close()
    theirs.close()


async def test_a_message_goes_out_as_one_line():
    channel, _, theirs = await opened()
    first = channel.send(b'{"a":1}')
    second = channel.send(b'{"b":2}')
    assert (first, second) == (0, 8)
    assert channel.delivered == 0 and channel.backlog == 16
    channel.flush()
    assert channel.delivered == 16 and channel.backlog == 0
    assert theirs.recv(100) == b'{"a":1}\n{"b":2}\n'
    await channel.close()
    theirs.close()


async def test_the_end_of_input_ends_the_channel():
    channel, heard, theirs = await opened()
    theirs.send(b"last\n")
    theirs.close()
    await heard.until(lambda: heard.ends)
    assert heard.messages == [b"last"]
    assert [type(end) for end in heard.ends] == [PeerClosed]
    await channel.close()


async def test_the_last_line_needs_no_newline():
    channel, heard, theirs = await opened()
    theirs.send(b"complete\nunended")
    theirs.close()
    await heard.until(lambda: heard.ends)
    assert heard.messages == [b"complete", b"unended"]
    await channel.close()


async def test_with_a_listener_the_end_of_input_leaves_the_output_open():
    over = asyncio.Event()
    channel, heard, theirs = await opened(on_eof=over.set)
    theirs.shutdown(socket.SHUT_WR)
    await over.wait()
    assert heard.ends == []
    channel.send(b"still here")
    channel.flush()
    assert theirs.recv(100) == b"still here\n"
    await channel.close()
    theirs.close()


async def test_a_peer_that_does_not_read_any_more_is_lost():
    channel, heard, theirs = await opened(on_eof=lambda: None)
    theirs.close()
    channel.send(b"x")
    channel.send(b"y")
    await heard.until(lambda: heard.ends)
    assert [type(end) for end in heard.ends] == [ConnectionLost]
    await channel.close()


async def test_closing_says_what_was_left_to_say():
    channel, heard, theirs = await opened()
    channel.send(b"x" * 200_000)
    closing = asyncio.ensure_future(channel.close())
    got = b""
    while not got.endswith(b"\n"):
        await asyncio.sleep(0)
        try:
            got += theirs.recv(100_000)
        except BlockingIOError:
            pass
    await closing
    assert len(got) == 200_001
    assert [type(end) for end in heard.ends] == [ConnectionClosed]
    theirs.close()


@virtual_time
async def test_closing_does_not_wait_for_ever_for_a_peer_that_does_not_read():
    channel, heard, theirs = await opened()
    channel.send(b"x" * 5_000_000)
    await channel.close()
    assert [type(end) for end in heard.ends] == [ConnectionClosed]
    theirs.close()


async def test_the_end_is_told_once():
    channel, heard, theirs = await opened()
    theirs.close()
    await heard.until(lambda: heard.ends)
    await channel.close()
    await channel.close()
    assert [type(end) for end in heard.ends] == [PeerClosed]


async def test_draining_waits_for_the_peer():
    channel, _, theirs = await opened(Limits(pressure_bytes=1000))
    channel.send(b"x" * 1_000_000)
    channel.flush()
    draining = asyncio.ensure_future(channel.drain())
    await turns()
    assert not draining.done()
    while not draining.done():
        await asyncio.sleep(0)
        try:
            theirs.recv(1_000_000)
        except BlockingIOError:
            pass
    assert channel.backlog <= 500
    await channel.close()
    theirs.close()


async def test_before_it_is_open_there_is_nothing():
    read, write = os.pipe()
    channel = LineChannel(read, write)
    with pytest.raises(NotOpen):
        channel.send(b"x")
    assert (channel.delivered, channel.backlog) == (0, 0)
    channel.flush()
    channel.read_rest()
    channel.close_input()
    await channel.drain()
    await channel.close()
    os.close(read)
    os.close(write)


async def test_what_is_left_to_read_can_be_read_at_once():
    channel, heard, theirs = await opened()
    theirs.send(b"now\n")
    channel.read_rest()
    assert heard.messages == [b"now"]
    await channel.close()
    theirs.close()


async def test_the_peer_can_be_told_that_nothing_more_comes():
    channel, heard, theirs = await opened()
    channel.close_input()
    assert heard.ends == []
    await channel.close()
    theirs.close()
