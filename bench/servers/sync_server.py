"""The bench server on Interlock with a plain function: it runs in a thread of the pool."""

from interlock import Server

server = Server("bench", version="1.0")


@server.tool
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


if __name__ == "__main__":
    server.run()
