"""A server of ours whose tools write to stdout in every way there is. Every noise is one line that holds NOISE."""

import os
import subprocess
import sys

from interlock import Server

server = Server("noisy", version="1")
print("NOISE while it is imported")


def make_noise(manner: str, number: int) -> None:
    if manner == "print":
        print(f"NOISE {number}")
    elif manner == "fake answer":
        print(f'{{"jsonrpc":"2.0","id":{number},"result":{{"NOISE":1}}}}', flush=True)
    elif manner == "unfinished line":
        sys.stdout.write(f"NOISE {number} …")
        sys.stdout.flush()
        os.write(1, b"\n")
    elif manner == "descriptor":
        os.write(1, b"\x00\xff NOISE\n")
    else:
        subprocess.run(["echo", "NOISE", str(number)], check=True)


@server.tool
async def speak(manner: str, number: int) -> str:
    """Make a noise on the event loop's thread."""
    make_noise(manner, number)
    return str(number)


@server.tool
def shout(manner: str, number: int) -> str:
    """Make a noise in a thread."""
    make_noise(manner, number)
    return str(number)
