"""The command line. `interlock run` is on every host's launch path: it imports what a stdio server needs, no more."""

from __future__ import annotations

import sys

__all__ = ["main"]

USAGE = """\
usage: interlock run FILE[:OBJECT]           serve a Server over stdio
       interlock run FILE[:OBJECT] --http    serve it over HTTP
           --host HOST     bind this address (127.0.0.1)
           --port PORT     listen on this port (8000; 0 takes any free one)
           --path PATH     the endpoint (/mcp)
           --allow NAME    a name or an address by which other machines call it; once for each
           --state FILE    keep sessions and keys in this file, for all processes that name it
           --workers N     serve with so many processes (1); more than one need --state
       interlock version                     print the version
       interlock help                        print this

examples:
  interlock run server.py                    the one Server in server.py
  interlock run server.py:notes              the Server called notes
  interlock run server.py --http --port 0    on any free port, which is printed
"""


def main(arguments: list[str] | None = None) -> None:
    """Run one command; ends the process with 0, 1 (it failed) or 2 (it was called wrongly)."""
    words = sys.argv[1:] if arguments is None else arguments
    match words:
        case ["run", "-h" | "--help"] | ["-h" | "--help" | "help", *_]:
            print(USAGE, end="")
        case ["run", target, *options] if not options or options[0].startswith("-"):
            from .run import run  # only this command touches the standard streams

            sys.exit(run(target, options))
        case ["version" | "--version"]:
            from ..version import __version__

            print(f"interlock {__version__}")
        case [word, *_] if word != "run":
            print(f"interlock: there is no command {word!r}\n\n{USAGE}", end="", file=sys.stderr)
            sys.exit(2)
        case _:
            print(USAGE, end="", file=sys.stderr)
            sys.exit(2)
