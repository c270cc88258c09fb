"""testing/recording.py: what passes through is written down and handed on."""

from interlock.testing import Transcript, recording
from interlock.transport.memory import memory_pair
from interlock.wire.errors import PeerClosed


class Heard:
    def __init__(self):
        self.messages, self.ends, self.skipped = [], [], []

    def received(self, message):
        self.messages.append(message)

    def oversized(self, beginning, size):
        self.skipped.append((beginning, size))

    def ended(self, error):
        self.ends.append(error)


async def test_both_directions_are_written_down():
    transcript, near, heard = Transcript(), Heard(), Heard()
    inner, far = memory_pair()
    channel = recording(lambda: inner, transcript)()
    await far.open(heard)
    await channel.open(near)
    assert channel.send(b'{"a":1}') is None
    far.send(b'{"b":2}')
    assert heard.messages == [b'{"a":1}'] and near.messages == [b'{"b":2}']
    assert [(line.sender, line.data) for line in transcript.lines] == [("client", b'{"a":1}'), ("server", b'{"b":2}')]
    assert (channel.delivered, channel.backlog) == (None, 0)
    await channel.drain()
    await channel.close()
    assert isinstance(heard.ends[0], PeerClosed) and len(near.ends) == 1


async def test_what_is_too_long_is_written_down_as_it_began():
    class Long:
        async def open(self, receiver):
            receiver.oversized(b'{"id":1', 99)

    transcript, near = Transcript(), Heard()
    await recording(Long, transcript)().open(near)
    assert near.skipped == [(b'{"id":1', 99)] and transcript.lines[0].data == b'{"id":1'
