"""What a person is shown of a deed: exactly what will be sent, to whom, whole and escaped.

What a server says of itself stands apart from it and is marked as such: it is written by whom the question is about.
"""

from __future__ import annotations

import json
from typing import Any, cast

from ...wire.escaping import display, display_block
from ...wire.json.reader import read_own_json
from .action import Deed, Kind
from .diffs import escaped, readable
from .pins import Definition, Item

__all__ = ["about", "offer", "question", "quoted", "shown", "title", "warnings"]

_MAX_NAME = 80  # characters of a name in the question itself; all of it is in what is shown

_SENTENCES: dict[Kind, str] = {
    "launch": "start or connect to the server {server}",
    "definitions": "trust what the server {server} offers: {name}",
    "tool": "call the tool {name} of the server {server} with",
    "resource": "read the resource {name} from the server {server}",
    "prompt": "get the prompt {name} from the server {server} with",
    "completion": "send to the server {server}, to complete {name}",
    "sampling": "let a model answer the server {server}",
    "sampling_answer": "give the server {server} this answer of a model",
    "elicitation": "answer a question of the server {server}",
    "open_url": "open a page for the server {server}",
    "roots": "tell the server {server} these folders",
}


def shown(deed: Deed) -> str:
    """A sentence, and the arguments below it as JSON."""
    sentence = _SENTENCES[deed.kind].format(server=quoted(deed.server), name=quoted(deed.name))
    return sentence if deed.payload == b"null" else f"{sentence}\n{readable(deed.payload)}"


def question(deed: Deed, why: str) -> str:
    """What is asked, in one line: it stands directly above the answer, however much was shown before."""
    server, name = (quoted(each[:_MAX_NAME]) + " (cut)" * (len(each) > _MAX_NAME) for each in (deed.server, deed.name))
    sentence = _SENTENCES[deed.kind].format(server=server, name=name).removesuffix(" with")
    return f"May this be done: {sentence}? ({display(why, 300)})"


def quoted(text: str) -> str:
    """In quotes, in full, and once more in ASCII where letters of other scripts might pass for it."""
    plain = escaped(json.dumps(text, ensure_ascii=False))
    return plain if text.isascii() else f"{plain} = {json.dumps(text)}"


def warnings(deed: Deed) -> tuple[str, ...]:
    """Whose data may be in it."""
    if not deed.foreign:
        return ()
    names = ", ".join(quoted(name) for name in sorted(deed.foreign))
    return (f"Data of other servers may be in it: {names}.",)


def title(deed: Deed, definition: Definition | None) -> str:
    """What to call the item: its title, else the one of its annotations, else its name (schema#tool)."""
    members = _members(definition)
    hints = members.get("annotations")
    hinted = cast("dict[str, Any]", hints).get("title") if isinstance(hints, dict) else None
    chosen = next((each for each in (members.get("title"), hinted) if isinstance(each, str) and each), deed.name)
    return display(chosen)


def about(definition: Definition | None) -> str:
    """What the server says of the item: claims, not facts. A block that cannot be taken for the question."""
    said = _members(definition).get("description")
    return display_block(said) if isinstance(said, str) and said.strip() else ""


def _members(definition: Definition | None) -> dict[str, Any]:
    told = read_own_json(definition.text) if definition is not None else None
    return cast("dict[str, Any]", told) if isinstance(told, dict) else {}


def offer(server: str, definitions: dict[Item, Definition], costs: dict[Item, int]) -> str:
    """All that a server offers, in full; with what it costs a model to be told of it, where that is known."""
    total = f", about {sum(costs.values())} tokens in all" if costs else ""
    lines = [f"the server {quoted(server)} offers {len(definitions)} things{total}"]
    for item, definition in definitions.items():
        cost = f" (about {costs[item]} tokens)" if costs.get(item) else ""
        name = f" {quoted(item.name)}" if item.name else ""
        lines += ["", f"{item.kind}{name}{cost}", readable(definition.text)]
    return "\n".join(lines)
