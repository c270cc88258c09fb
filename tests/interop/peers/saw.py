"""What a peer client saw, gathered step by step and printed as JSON at the end. Shared by all peer clients."""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any


class Saw:
    """`record` has one entry per step: what came back, or the error that came instead."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.logs: list[Any] = []
        self.notices: list[str] = []
        self.progress: list[float] = []
        self.asked: list[Any] = []

    async def step(self, name: str, work: Awaitable[Any]) -> Any:
        """Await the step and note its outcome; errors are noted, not raised."""
        try:
            value = await work
        except Exception as error:  # every kind of failure is something the test wants to see
            self.record[name] = {"error": _described(error)}
            return None
        self.record[name] = plain(value)
        return value

    def note(self, name: str, value: Any) -> None:
        self.record[name] = plain(value)

    def heard(self, message: Any) -> None:
        """A notification (or an exception) that the SDK hands to its message handler."""
        method = getattr(message, "method", None)
        if method == "notifications/progress":
            self.progress.append(message.params.progress)
        else:
            self.notices.append(method or repr(message))

    def print(self) -> None:
        told = {"logs": self.logs, "notices": self.notices, "asked": self.asked, "progress": self.progress}
        json.dump({**self.record, **told}, sys.stdout)


def plain(value: Any) -> Any:
    """A model of the SDK as the JSON it stands for."""
    dump: Callable[..., Any] | None = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(by_alias=True, exclude_none=True, mode="json")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _described(error: BaseException) -> dict[str, Any]:
    told = getattr(error, "error", None)
    if told is not None and hasattr(told, "code"):
        return {"code": told.code, "message": told.message, "data": told.data}
    return {"type": type(error).__name__, "message": str(error)}


def server_command(status: str, python: str, server: str) -> tuple[str, list[str]]:
    """Our server, started by a shell that notes its exit status: a server that has to be killed leaves none."""
    keep_status = '"$@"; echo $? > "$0"'
    searched = os.environ.get("PYTHONPATH")  # SDKs do not pass it on, but it says which code is tested
    path = ["env", f"PYTHONPATH={searched}"] if searched else []
    return "/bin/sh", ["-c", keep_status, status, *path, python, "-m", "interlock", "run", server]


def exit_status(status: str) -> str | None:
    path = Path(status)
    return path.read_text().strip() if path.exists() else None
