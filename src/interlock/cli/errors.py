"""How a command ends: the exit codes, and the one exception that means "say this and end with that"."""

from __future__ import annotations

__all__ = [
    "Failure",
    "OK",
    "FAILED",
    "USAGE",
    "UNREACHABLE",
    "REFUSED",
    "TIMEOUT",
    "UNAUTHORIZED",
    "BROKEN",
    "INTERRUPTED",
    "CODES",
]

OK, FAILED, USAGE, UNREACHABLE, REFUSED, TIMEOUT, UNAUTHORIZED, BROKEN, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

CODES = {
    OK: "done",
    FAILED: "the tool says that it failed, doctor found a fault, or the file cannot be served or written",
    USAGE: "called wrongly: an unknown word, option or argument",
    UNREACHABLE: "the server could not be started or reached, or the connection broke",
    REFUSED: "the server said no: no such tool, wrong arguments, an error of its own",
    TIMEOUT: "no answer in time",
    UNAUTHORIZED: "the server wants credentials, or more than were given",
    BROKEN: "the server broke a rule of the protocol",
    INTERRUPTED: "interrupted (Ctrl-C)",
}
"""What each exit code means; the help and docs/cli.md say the same."""


class Failure(Exception):
    """A command cannot go on: one sentence, what was behind it, what to do; the exit code says it to programs."""

    def __init__(self, message: str, *, code: int = FAILED, cause: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.cause, self.hint = message, code, cause, hint

    def told(self) -> str:
        """For people: a line each."""
        lines = [self.message]
        if self.cause:
            lines.append(f"  cause: {self.cause}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)
