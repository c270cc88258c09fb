"""What the streams of a server said, kept in memory for clients that come back for it. For both Python SDKs."""

from mcp.server.streamable_http import EventMessage, EventStore


class KeptEvents(EventStore):
    def __init__(self) -> None:
        self.events: list[tuple[str, object]] = []

    async def store_event(self, stream_id, message) -> str:
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        at = int(last_event_id)
        stream, _ = self.events[at - 1]
        for number, (other, message) in enumerate(self.events[at:], at + 1):
            if other == stream and message is not None:  # an event without a message only says its id
                await send_callback(EventMessage(message, str(number)))
        return stream
