"""`interlock read TARGET URI`: what a resource holds."""

from __future__ import annotations

import base64
import binascii
import os
import sys

from ...client.client import Client
from ...wire.types.content import ResourceContents
from ..connect import OPTIONS_HELP, use_one
from ..errors import BROKEN, FAILED, OK, USAGE, Failure
from ..options import Words
from ..terminal.output import as_json, builtins_of, contents_text, note, say, say_data
from ..terminal.progress import Progress
from ..tool_arguments import read_texts

__all__ = ["HELP", "command", "read"]

HELP = f"""\
examples:
  interlock read server.py note://1                      the text of one resource
  interlock read server.py 'note://{{day}}' day=monday     a template, filled in
  interlock read server.py logo://big --output logo.png  what is no text goes into a file
  interlock read note://1 -- npx some-server             a server that is started by a command

usage: interlock read TARGET URI|TEMPLATE [KEY=VALUE …] [--output FILE]

  --output FILE                write the bytes there; a file that exists is left alone and is an error

{OPTIONS_HELP}"""


def command(words: list[str]) -> int:
    return use_one(words, "URI", _read, {"output": "text"})


async def _read(client: Client, progress: Progress, own: list[str], given: Words) -> int:
    output = given.options.get("output")
    return await read(client, progress, own[0], own[1:], json=given.flag("json"), output=output)


async def read(
    client: Client, progress: Progress, uri: str, words: list[str], *, json: bool = False, output: str | None = None
) -> int:
    values = read_texts(words) if words or ("{" in uri and "}" in uri) else None
    contents = await client.read_resource(uri, values, on_progress=progress if progress.shows else None)
    progress.clear()
    if output is not None:
        return _write(contents, output)
    if json:
        say(as_json({"contents": builtins_of(contents)}))
    else:
        for each in contents:
            say_data(contents_text(builtins_of(each)))
    return OK


def _write(contents: list[ResourceContents], output: str) -> int:
    if len(contents) != 1:
        raise Failure(f"the resource has {len(contents)} contents, a file holds one", code=USAGE, hint="use --json")
    data = _bytes_of(contents[0])
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        raise Failure(f"{output}: {error.strerror}", code=FAILED) from error
    if sys.stderr.isatty():
        note(f"{len(data):,} bytes written to {output}")
    return OK


def _bytes_of(contents: ResourceContents) -> bytes:
    if isinstance(contents.text, str):
        return contents.text.encode()
    try:
        return base64.b64decode(str(contents.blob), validate=True)
    except binascii.Error as error:
        raise Failure("the server's bytes are no base64", code=BROKEN, cause=str(error)) from error
