"""A script of hostility.py over stdio: `hostile.py ERA STEP FAULT`. No Interlock in it."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from faultlab.hostility import Script, play

script = Script(*sys.argv[1:])


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def obey(message: dict) -> None:
    for act in play(script, message):
        if act.what == "hold":
            time.sleep(3600)  # deaf, until somebody ends it
        if act.what == "end":
            os._exit(1)
        write(act.data + (b"\n" if act.what == "say" else b""))


rest = b""
while chunk := os.read(0, 65536):
    *lines, rest = (rest + chunk).split(b"\n")
    for line in lines:
        obey(json.loads(line))
