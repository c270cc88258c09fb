"""A user, a model and roots, played by a script: answers to the questions a server is expected to ask.

Each answer counts once, for the first question that fits it. A question without an answer and an answer without a
question are failures of the test, told in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self, cast

import msgspec

from ..wire.escaping import display
from ..wire.json.lenient import one_or_more

__all__ = ["Script", "UnexpectedQuestion"]

Kind = Literal["form", "url", "sample", "roots"]
_WORDS: dict[Kind, str] = {"form": "a form", "url": "a page", "sample": "the model", "roots": "the roots"}
_NEEDS: dict[str, Kind] = {"elicitation": "form", "elicitation.url": "url", "sampling": "sample", "roots": "roots"}


class UnexpectedQuestion(AssertionError):
    """The server asked what the script has no answer for."""


class _Answer(msgspec.Struct):
    kind: Kind
    about: str
    result: dict[str, Any]
    used: bool = False

    def fits(self, kind: Kind, text: str) -> bool:
        return not self.used and self.kind == kind and self.about in text

    def __str__(self) -> str:
        return _WORDS[self.kind] + (f" about {self.about!r}" if self.about else "")


class Script:
    """Answers in any order. `about` is a part of the question's text; without it, any question of the kind fits.

    With `MemoryClient(server, script=…)` all is checked at the end; with another client give it `**callbacks()` and
    call `check()` yourself.
    """

    def __init__(self) -> None:
        self._answers: list[_Answer] = []
        self._unexpected: list[str] = []
        self.asked: list[tuple[str, str]] = []
        """What was asked, in order: a kind (form, url, sample, roots) and the question's text."""

    # --- answers ----------------------------------------------------------------------------------

    def accept(self, about: str = "", /, **content: Any) -> Self:
        """The user fills in the form. What an author asks for as a plain type is called `value`."""
        return self._add("form", about, {"action": "accept", "content": content})

    def decline(self, about: str = "", /) -> Self:
        """The user says no to a form."""
        return self._add("form", about, {"action": "decline"})

    def cancel(self, about: str = "", /) -> Self:
        """The user closes the form without a choice."""
        return self._add("form", about, {"action": "cancel"})

    def visit(self, about: str = "", /, action: Literal["accept", "decline", "cancel"] = "accept") -> Self:
        """The user agrees to open a page, or not; `about` is a part of the message or of the address."""
        return self._add("url", about, {"action": action})

    def sample(self, text: str, about: str = "", /, **members: Any) -> Self:
        """The model says `text`; `members` replace those of the result (`model`, `stopReason`, `content`)."""
        told = {"role": "assistant", "content": {"type": "text", "text": text}, "model": "scripted"}
        return self._add("sample", about, {**told, "stopReason": "endTurn", **members})

    def roots(self, *roots: str | Mapping[str, Any]) -> Self:
        """The places the user works in, as file:// URIs."""
        told = [{"uri": root} if isinstance(root, str) else dict(root) for root in roots]
        return self._add("roots", "", {"roots": told})

    def _add(self, kind: Kind, about: str, result: dict[str, Any]) -> Self:
        self._answers.append(_Answer(kind, about, result))
        return self

    # --- for clients ------------------------------------------------------------------------------

    def callbacks(self, can: tuple[str, ...] = tuple(_NEEDS)) -> dict[str, Any]:
        """Arguments for a `Client`. It declares all that `can` names, whether there is an answer or not."""
        found: dict[Kind, tuple[str, Callable[..., Any]]] = {
            "form": ("elicit", self._form),
            "url": ("elicit_url", self._page),
            "sample": ("sample", self._model),
            "roots": ("roots", self._places),
        }
        return dict(found[_NEEDS[need]] for need in can)

    def _form(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._answer("form", str(params.get("message", "")))

    def _page(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._answer("url", f"{params.get('message', '')} {params.get('url', '')}")

    def _model(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._answer("sample", _texts(params.get("messages")))

    def _places(self) -> list[dict[str, Any]]:
        return self._answer("roots", "")["roots"]

    def _answer(self, kind: Kind, text: str) -> dict[str, Any]:
        self.asked.append((kind, text))
        for answer in self._answers:
            if answer.fits(kind, text):
                answer.used = True
                return answer.result
        told = f"the server asked for {_WORDS[kind]}" + (f" with {display(text, 300)!r}" if text else "")
        self._unexpected.append(told)
        raise UnexpectedQuestion(f"{told}, and the script has no answer for that")

    # --- at the end -------------------------------------------------------------------------------

    def problems(self) -> list[str]:
        """What went otherwise than written; empty where all went well."""
        unused = [
            f"the script's answer for {answer} was never asked for" for answer in self._answers if not answer.used
        ]
        return [*(f"{told}, and the script has no answer for that" for told in self._unexpected), *unused]

    def check(self) -> None:
        """Fail the test if anything was asked that is not written, or written and not asked."""
        if problems := self.problems():
            raise AssertionError("\n".join(problems))


def _texts(messages: Any) -> str:
    """All texts of sampling messages, whose content is a block or several."""
    found: list[str] = []
    for message in cast("list[dict[str, Any]]", messages or []):
        blocks = one_or_more(message.get("content"))
        found += [str(block["text"]) for block in blocks if block.get("type") == "text"]
    return "\n".join(found)
