"""Resources, suggestions and pages of every kind. Its lists fit on pages of two."""

import atexit
import shutil
import tempfile
from pathlib import Path

from interlock import Annotations, Context, Icon, ResourceContents, ResourceNotFound, Server, Suggestions, files
from interlock.wire.errors import InvalidParams

server = Server("library", version="1", page_size=2)


def _planted() -> Path:
    """A copy of the folder with links that lead out of it: in the repository, tools would follow them for ever."""
    house = Path(tempfile.mkdtemp(prefix="interlock-library-"))
    atexit.register(shutil.rmtree, house, ignore_errors=True)
    tree = Path(shutil.copytree(Path(__file__).resolve().parents[1] / "folder", house / "folder"))
    (house / "wire_peer.py").write_text("secret")
    (tree / "up").symlink_to("..")
    (tree / "out").symlink_to("../wire_peer.py")
    return tree


TREE = _planted()
BOOKS = {1: "Moby Dick", 2: "Emma", 3: "Faust"}
CITIES = ["Linz", "Wien", "Wiener Neustadt", "Klosterneuburg", "Graz", "Neuwied"]
state = {"allowed": False, "private": 0, "failed": 0}


# --- who may ---


def guard(handler):
    """Nobody reads or completes what is private before he may."""

    async def guarded(exchange):
        about = getattr(exchange.params, "uri", "") + getattr(getattr(exchange.params, "ref", None), "uri", "")
        if about.startswith("private:") and not state["allowed"]:
            if exchange.method == "completion/complete":
                raise InvalidParams("Unknown resource template")
            raise ResourceNotFound("Resource not found", {"uri": about})
        return await handler(exchange)

    return guarded


server.use(guard)


@server.tool
async def allow() -> str:
    state["allowed"] = True
    return "from now on"


@server.tool
async def count(what: str) -> str:
    return str(state[what])


# --- resources ---


@server.resource(
    "library://moby-dick",
    title="Moby Dick",
    mime_type="text/markdown",
    size=17,
    icons=[Icon(src="https://example.com/whale.png", mime_type="image/png", sizes=["48x48"])],
    annotations=Annotations(audience=["user", "assistant"], priority=0.8, last_modified="2025-01-12T15:00:58Z"),
    meta={"com.example/shelf": 7},
)
async def moby_dick() -> str:
    """The whale."""
    return "Call me Ishmael."


@server.resource("library://plain")
def plain() -> str:
    return "plain"


@server.resource("library://cover", mime_type="image/png")
async def cover() -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\xff"


@server.resource("library://record")
async def record() -> dict:
    return {"title": "Emma"}


@server.resource("library://both")
async def both() -> list:
    return [
        ResourceContents(uri="library://both/1", text="one", mime_type="text/plain"),
        ResourceContents(uri="library://both/2", blob="AP8="),
    ]


@server.resource("library://broken")
async def broken() -> str:
    state["failed"] += 1
    raise RuntimeError("secret detail")


@server.resource("private://diary")
async def diary() -> str:
    state["private"] += 1
    return "dear diary"


@server.resource(
    "library://books/{id}",
    title="A book",
    mime_type="text/plain",
    icons=[Icon(src="https://example.com/book.png")],
    annotations=Annotations(audience=["user"], priority=1),
    complete={"id": [str(number) for number in BOOKS]},
)
async def book(id: int) -> str:
    """One book by its number."""
    if id not in BOOKS:
        raise ResourceNotFound("No such book", {"uri": f"library://books/{id}"})
    return BOOKS[id]


@server.resource("library://pages/{+path}{?from_line}")
async def page(path: str, from_line: int = 1) -> str:
    return f"{path} from {from_line}"


@server.resource("private://notes/{id}", complete={"id": ["secret-1", "secret-2"]})
async def private_note(id: str) -> str:
    return id


tree = files(server, TREE, uri="file:///folder/", most_listed=2)


# --- prompts and their suggestions ---


def countries(typed: str) -> list[str]:
    return [name for name in ("Austria", "Australia", "Germany") if name.startswith(typed)]


async def cities(typed: str, known: dict[str, str], ctx: Context) -> list[str]:
    found = {"Austria": ["Wien", "Graz"], "Germany": ["Weimar"]}.get(known.get("country", ""), [])
    return [name for name in found if name.startswith(typed)]


@server.prompt(complete={"country": countries, "city": cities})
async def travel(country: str, city: str = "", note: str = "") -> str:
    return f"Go to {city} in {country}. {note}"


def many(typed: str) -> list[str]:
    return [f"{typed}{number}" for number in range(500)]


async def fetched(typed: str) -> Suggestions:
    return Suggestions([f"{typed}{number}" for number in range(20)], total=7000)


async def failing(typed: str) -> list[str]:
    raise RuntimeError("secret detail")


async def garbage(typed: str) -> list:
    return [1, None]


@server.prompt(
    complete={"many": many, "fetched": fetched, "failing": failing, "garbage": garbage, "town": CITIES},
)
async def pick(many: str = "", fetched: str = "", failing: str = "", garbage: str = "", town: str = "") -> str:
    return f"{many}{fetched}{failing}{garbage}{town}"


@server.prompt
async def quiet(word: str = "") -> str:
    return word


# --- change ---


@server.tool
async def touch(uri: str) -> str:
    server.resource_changed(uri)
    return "touched"


@server.tool
def touch_often(uri: str, times: int) -> str:
    """In a thread."""
    for _ in range(times):
        server.resource_changed(uri)
    return "touched"


@server.tool
async def touch_file(path: str) -> str:
    tree.changed(path)
    return "touched"


async def _one_more() -> str:
    return ""


async def _one_more_of(id: str) -> str:
    return id


@server.tool
async def add(kind: str, name: str) -> str:
    match kind:
        case "tools":
            server.tool(name=name)(_one_more)
        case "prompts":
            server.prompt(name=name)(_one_more)
        case "resources":
            server.resource(f"more:{name}")(_one_more)
        case "templates":
            server.resource(f"more:{name}/{{id}}")(_one_more_of)
    return "added"


@server.tool
async def remove(kind: str, name: str) -> str:
    match kind:
        case "tools":
            server.remove_tool(name)
        case "prompts":
            server.remove_prompt(name)
        case "resources":
            server.remove_resource(f"more:{name}")
        case "templates":
            server.remove_resource(f"more:{name}/{{id}}")
    return "removed"


if __name__ == "__main__":
    server.run()
