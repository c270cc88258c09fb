"""The shape of the code itself: rooms, cycles, dates, sizes, mirrors, what an import costs and what it leaves alone."""

from __future__ import annotations

import ast
import inspect
import json
import pydoc
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import interlock

TESTS = Path(__file__).resolve().parent
SOURCE = Path(interlock.__file__).resolve().parent
FILES = sorted(SOURCE.rglob("*.py"))

# Each room imports only rooms of a smaller number, or itself; two rooms of one number never import each other.
ROOMS = {
    "wire": 0,
    "revisions": 1,
    "protocol": 2,
    "state": 3,
    "web": 4,
    "auth": 5,
    "transport": 6,
    "server": 7,
    "client": 7,
    "host": 8,
    "cli": 9,
    "testing": 10,
}
ANYBODY = {"interlock.version"}  # may be imported from every room
HEAVY = {
    "aiohttp",
    "httpx",
    "cryptography",
    "opentelemetry",
    "jsonschema",
    "jsonschema_rs",
    "pydantic",
    "click",
    "rich",
    "uvicorn",
    "httptools",
    "uvloop",
    "starlette",
}
MAX_LINES, MAX_LINES_OF_A_FUNCTION, MAX_MODULES = 450, 60, 20


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def short(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


MODULES = {name_of(path): path for path in FILES}
each_file = pytest.mark.parametrize("path", FILES, ids=short)


# --- imports ---


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def imports_in(path: Path, *, types_too: bool) -> Iterator[tuple[str, bool]]:
    """Every module of ours that a file imports, and whether it does so late (inside of a function)."""

    def visit(node: ast.AST, late: bool) -> Iterator[tuple[str, bool]]:
        if is_type_checking(node) and not types_too:
            return
        if isinstance(node, ast.Import):
            yield from ((alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((name, late) for name in imported_by(path, node))
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, late)

    for name, late in visit(tree_of(path), False):
        if name.split(".")[0] == "interlock":
            yield name, late


def imported_by(path: Path, node: ast.ImportFrom) -> list[str]:
    """The modules behind `from x import y`: `x.y` where that is a module, else `x`."""
    base = node.module or ""
    if node.level:
        package = name_of(path).split(".")
        if path.name != "__init__.py":
            package = package[:-1]
        package = package[: len(package) - (node.level - 1)]
        base = ".".join([*package, *([node.module] if node.module else [])])
    return [f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names]


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_folder_is_a_room():
    folders = {path.relative_to(SOURCE).parts[0] for path in FILES if path.parent != SOURCE}
    assert folders == set(ROOMS), "a new room needs its place in ROOMS"


@pytest.mark.parametrize("path", [path for path in FILES if path.parent != SOURCE], ids=short)
def test_a_room_imports_only_rooms_below_it(path):
    here = room_of(name_of(path))
    for module, _ in imports_in(path, types_too=True):
        there = room_of(module)
        if module in ANYBODY or there == here:
            continue
        assert there in ROOMS, f"{short(path)} imports the root package ({module})"
        assert ROOMS[there] < ROOMS[here], f"{short(path)} ({here}) imports {module} ({there})"


def test_there_is_no_cycle_between_modules():
    edges = {
        name: {module for module, _ in imports_in(path, types_too=False) if module in MODULES and module != name}
        for name, path in MODULES.items()
    }
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module in done:
            return
        for other in sorted(edges[module]):
            walk(other, (*path, module))
        done.add(module)

    for module in sorted(edges):
        walk(module, ())


def test_imports_are_late_only_where_it_pays():
    late = {(short(path), module) for path in FILES for module, is_late in imports_in(path, types_too=True) if is_late}
    # `interlock version` must not pay for a server, nor one command for another (cli/main.py imports them by name), nor
    # a command that succeeds for the text of a failure. A server over stdio is started by every launch of a host and
    # must not pay for HTTP, nor for what few servers need. The protocol is a class of uvicorn's: it exists only where
    # uvicorn and its parser do. Only a name that a file of the current folder gives needs the gate of a host (50 of
    # 190 ms).
    assert late == {
        ("cli/main.py", "interlock.version"),
        ("cli/main.py", "interlock.cli.terminal.output"),
        ("cli/target.py", "interlock.cli.folder_approval"),
        ("cli/commands/run.py", "interlock.cli.commands.run_reload"),
        ("cli/commands/run.py", "interlock.transport.http.runner.serve"),
        ("client/client.py", "interlock.client.supervisor"),
        ("client/targets.py", "interlock.client.config.entries"),
        ("client/targets.py", "interlock.client.http_target"),
        ("client/targets.py", "interlock.web.outbound.endpoint"),
        ("client/output_validation.py", "interlock.wire.json.schema"),
        ("client/methods.py", "interlock.wire.uri_expansion"),
        ("protocol/input/strategy.py", "interlock.protocol.input.parking"),
        ("protocol/input/strategy.py", "interlock.protocol.input.replay"),
        ("protocol/input/strategy.py", "interlock.protocol.input.rounds"),
        ("protocol/input/callback.py", "interlock.protocol.input.validation"),
        ("protocol/server/handshake.py", "interlock.protocol.server.session_record"),
        ("protocol/server/router.py", "interlock.protocol.server.offered"),
        ("protocol/input/parking_lot.py", "interlock.protocol.input.rounds"),
        ("protocol/request.py", "interlock.revisions.deprecation"),
        ("protocol/request.py", "interlock.protocol.throttling"),
        ("protocol/request.py", "interlock.protocol.throttling"),
        ("server/context.py", "interlock.server.registry.forwarding"),
        ("server/context.py", "interlock.server.input"),
        ("server/context.py", "interlock.server.roots"),
        ("server/context.py", "interlock.wire.once"),
        ("server/tools/encoding.py", "interlock.server.content"),
        ("server/arguments/decode.py", "interlock.server.arguments.repair"),
        ("server/prompts.py", "interlock.server.arguments.repair"),
        ("server/registry/registry.py", "interlock.server.custom_methods"),
        ("server/registry/registry.py", "interlock.server.registry.visibility"),
        ("server/options.py", "interlock.server.prompts"),
        ("server/options.py", "interlock.server.resources.resource"),
        ("server/tools/output_schema.py", "interlock.server.content"),
        ("server/tools/output_schema.py", "interlock.wire.json.schema"),
        ("server/tools/output_schema.py", "interlock.wire.types.content"),
        ("server/registry/resource_set.py", "interlock.server.resources.resource"),
        ("server/registry/resource_set.py", "interlock.server.resources.template"),
        ("server/tools/results.py", "interlock.server.content"),
        ("server/server.py", "interlock.server.registry.mounting"),
        ("server/server.py", "interlock.server.custom_methods"),
        ("server/server.py", "interlock.server.prompts"),
        ("server/server.py", "interlock.transport.http.server.app"),
        ("server/server.py", "interlock.transport.http.runner.serve"),
        ("server/tools/tool.py", "interlock.auth.www_authenticate"),
        ("server/tools/tool.py", "interlock.server.arguments.explicit_schema"),
        ("server/schema/builder.py", "interlock.server.schema.inline_refs"),
        ("state/sealing.py", "interlock.state.memory"),
        ("transport/jsonrpc/connection.py", "interlock.transport.jsonrpc.batch"),
        ("transport/http/server/backends.py", "interlock.transport.http.cluster.change_relay"),
        ("transport/http/server/backends.py", "interlock.transport.http.cluster.parked_runs"),
        ("transport/http/server/backends.py", "interlock.transport.http.cluster.legacy_sse"),
        ("transport/http/server/backends.py", "interlock.transport.http.cluster.sessions"),
        ("transport/http/server/backends.py", "interlock.transport.http.cluster.membership"),
        ("transport/http/runner/serve.py", "interlock.transport.http.runner.protocol"),
        ("wire/exchange.py", "interlock.wire.once"),
    }


# --- dates ---

DATE = re.compile(r"(2024.?11.?05|2025.?03.?26|2025.?06.?18|2025.?11.?25|2026.?07.?28)")


def is_prose(node: ast.AST) -> bool:
    """A string that stands alone: a docstring, of whatever it stands in or behind."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def words_in(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name and every string of the code, prose excepted."""
    for child in ast.iter_child_nodes(node):
        if is_prose(child):
            continue
        if isinstance(child, ast.Constant) and isinstance(child.value, str | bytes):
            text = child.value if isinstance(child.value, str) else child.value.decode("latin-1")
            yield child.lineno, text
        for field in ("id", "attr", "name", "arg", "module", "asname"):
            value = getattr(child, field, None)
            if isinstance(value, str):
                yield getattr(child, "lineno", 0), value
        yield from words_in(child)


@pytest.mark.parametrize("path", [path for path in FILES if room_of(name_of(path)) != "revisions"], ids=short)
def test_no_revision_is_named_outside_of_its_room(path):
    found = [f"line {line}: {text!r:.80}" for line, text in words_in(tree_of(path)) if DATE.search(text)]
    assert not found


def test_the_search_for_dates_finds_them():
    tree = ast.parse('"""2024-11-05"""\nx = "2025-06-18"\nR2025_11_25 = f"{x} 2026-07-28"\n')
    assert [line for line, text in words_in(tree) if DATE.search(text)] == [2, 3, 3]


# --- regular expressions ---


def strings_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every string that is not prose; of an f-string its text, with an x for each value."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in inner | prose:
            yield node.lineno, node.value if isinstance(node.value, str) else node.value.decode("latin-1")


def has_possessive(text: str) -> bool:
    """A possessive quantifier or an atomic group, were this a regular expression."""
    plain = re.sub(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]", "x", text, flags=re.DOTALL)  # without escapes and classes
    return re.search(r"(?:\w|(?<!\()\))(?:[*+?]|\{\d*,?\d*\})\+|\(\?>", plain) is not None


@each_file
def test_no_regular_expression_relies_on_possessive_parts(path):
    """Python 3.11.2, which Debian 12 has, matches them wrongly (python/cpython#106052)."""
    found = [f"line {line}: {text!r:.80}" for line, text in strings_in(tree_of(path)) if has_possessive(text)]
    assert not found


def test_the_search_for_possessive_parts_finds_them():
    good = r"""!$()*+,; [a++]+ a*\++ (?:a|b)+ a{1,2} [^]*+] \*+ c:\d+? x"""
    bad = [r"a++", r"[^a]*+b", r"(?:a|b)?+", r"a{1,2}+", r"(?:a){2,}+", r"(?>a)", r"[]a]++", r"\d*+"]
    assert not has_possessive(good) and all(has_possessive(text) for text in bad)
    tree = ast.parse('"""a++"""\nx = f"[{y}]*+"\nz = b"a++"')
    assert [line for line, text in strings_in(tree) if has_possessive(text)] == [2, 3]


# --- docstrings, names, sizes ---


def has_code(path: Path) -> bool:
    return any(not is_prose(node) for node in tree_of(path).body)


@pytest.mark.parametrize("path", [path for path in FILES if has_code(path)], ids=short)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(tree_of(path)), f"{short(path)} has no docstring"


@pytest.mark.parametrize(
    "path", [path for path in FILES if has_code(path) and path.name not in ("__main__.py", "version.py")], ids=short
)
def test_a_public_module_says_what_it_offers(path):
    module = __import__(name_of(path), fromlist=["__all__"])
    assert module.__all__, f"{short(path)} has no __all__"
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name), f"{short(path)} offers {name}, which it does not have"


@each_file
def test_a_file_can_be_read_in_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_a_folder_can_be_read_like_a_table_of_contents():
    modules = Counter(path.parent for path in FILES if path.name != "__init__.py")
    long = {folder.relative_to(SOURCE).as_posix(): count for folder, count in modules.items() if count > MAX_MODULES}
    assert not long


def folder_of(module: str) -> str:
    path = MODULES[module]
    return path.parent.relative_to(SOURCE).as_posix()


# Two folders that import each other, and what removes that.
BOTH_WAYS = {
    ("auth/authorization_server", "auth/resource_server"): "an own authorization server protects resources, too",
    ("host/gate", "host/launch"): "a launch is an action that the gate decides",
    ("transport/http/cluster", "transport/http/server"): "sessions of several workers are subclasses of sessions",
}


def test_folders_beside_each_other_import_in_one_direction():
    edges = {
        (folder_of(name), folder_of(module))
        for name, path in MODULES.items()
        for module, _ in imports_in(path, types_too=True)
        if module in MODULES
    }
    pairs = {
        (here, there)
        for here, there in edges
        if here < there and (there, here) in edges and Path(here).parent == Path(there).parent and "/" in here
    }
    assert pairs == set(BOTH_WAYS)


@each_file
def test_a_function_fits_on_a_screen(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            assert lines <= MAX_LINES_OF_A_FUNCTION, f"{short(path)}: {node.name} has {lines} lines"


# --- tests mirror sources ---


def has_logic(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for node in ast.walk(tree_of(path))
    )


def mirror_of(path: Path) -> Path:
    if path == SOURCE / "__init__.py":
        return TESTS / "test_interlock.py"
    return TESTS / path.relative_to(SOURCE).parent / f"test_{path.name}"


@pytest.mark.parametrize("path", [path for path in FILES if has_logic(path)], ids=short)
def test_every_file_with_logic_has_its_test_file(path):
    mirror = mirror_of(path)
    assert mirror.is_file(), f"{short(path)} has no {mirror.relative_to(TESTS)}"
    assert "def test_" in mirror.read_text(encoding="utf-8")


SHARED = {TESTS / "wire" / "types" / "test_nouns.py"}  # one test for all files that hold nothing but shapes


def test_every_test_file_of_a_room_has_its_source():
    mirrors = {mirror_of(path) for path in FILES}
    for room in ROOMS:
        for path in (TESTS / room).rglob("test_*.py"):
            assert path in SHARED or is_about(path, mirrors), f"{path.relative_to(TESTS)} mirrors no source"


def is_about(path: Path, mirrors: set[Path]) -> bool:
    """`test_probe.py` is about probe.py; `test_probe_discovery.py` is about one part of it."""
    words = path.stem.split("_")
    return any(path.with_name("_".join(words[:count]) + ".py") in mirrors for count in range(2, len(words) + 1))


# --- what an import costs and what it leaves alone, in processes of their own ---


def run_python(program: str, *words: str, data: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *words], input=data, capture_output=True, text=True, timeout=60, check=True
    )


def loaded_by(program: str) -> set[str]:
    """The modules that are loaded after a program."""
    done = run_python(program + "\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))")
    return set(json.loads(done.stdout))


def test_importing_loads_nothing_heavy():
    loaded = loaded_by(
        "import interlock\ninterlock.Server, interlock.Client\n[getattr(interlock, n) for n in interlock.__all__]"
    )
    assert "interlock.server.server" in loaded and "interlock.client.client" in loaded
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def test_the_package_itself_loads_neither_side():
    loaded = loaded_by("import interlock")
    assert not {name for name in loaded if name.startswith("interlock.") and name != "interlock.version"}


@pytest.mark.parametrize(("name", "other"), [("Server", "interlock.client"), ("Client", "interlock.server")])
def test_one_side_does_not_pay_for_the_other(name, other):
    loaded = loaded_by(f"import interlock\ninterlock.{name}")
    assert not {module for module in loaded if module.startswith(other + ".")}


def test_help_and_a_star_find_everything_that_is_public():
    found: dict[str, object] = {}
    exec("from interlock import *", found)
    assert set(interlock.__all__) <= set(found)
    text = pydoc.plain(pydoc.render_doc(interlock))  # needs nothing that is known to the type checker alone
    assert "class Server(" in text and "class Protection(" in text


SELDOM = (
    "auth.www_authenticate protocol.input.rounds protocol.input.validation protocol.throttling "
    "server.content server.custom_methods server.elicitation_form server.input server.prompts "
    "server.registry.mounting server.registry.visibility server.resources.resource state.memory "
    "wire.types.content"
)


def test_serving_over_stdio_loads_nothing_heavy(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(
        "import atexit, json, sys\nfrom interlock import Server\nserver = Server('s')\n"
        "@server.tool\nasync def hi() -> str: return 'hi'\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    )
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "hi"}},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "run", str(path)],
        input="".join(json.dumps(frame) + "\n" for frame in frames),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 2
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert not {name.split(".")[0] for name in loaded} & HEAVY
    assert not {name for name in loaded if name.startswith("interlock.client")}
    seldom = {f"interlock.{name}" for name in SELDOM.split()}
    assert seldom <= set(MODULES)
    assert not loaded & seldom, "what this server has no use for"
    commands = {name for name in loaded if name.startswith("interlock.cli.")}
    assert commands == {
        f"interlock.cli.{name}" for name in ("commands", "commands.run", "errors", "main", "options")
    }, "no other command"


LEAVES_ALONE = """
import asyncio, json, logging, pkgutil, importlib, signal, sys, warnings

def state():
    root = logging.getLogger()
    return repr([
        root.handlers, root.level, root.filters, logging.root.manager.disable, logging.lastResort,
        logging.getLoggerClass(), warnings.filters, sys.excepthook, sys.unraisablehook, sys.stdout, sys.stderr,
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        asyncio.get_event_loop_policy(), logging.captureWarnings,
    ])

asyncio.get_event_loop_policy()
before = state()
import interlock
for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
server = interlock.Server("s")
@server.tool
def tool(ctx: interlock.Context) -> str: return ""
client = interlock.Client(server)
assert state() == before, "importing or constructing changed something global"

async def talk():
    async with interlock.Client(server) as client:
        await client.list_tools()
asyncio.run(talk())
touched = [
    name for name, logger in logging.root.manager.loggerDict.items()
    if isinstance(logger, logging.Logger) and name.split(".")[0] == "interlock"
    and (logger.handlers or logger.level or logger.filters or logger.disabled or not logger.propagate)
]
assert not touched, touched
assert state() == before, "a conversation changed something global"
print("left alone")
"""


def test_importing_and_constructing_changes_no_logger_and_nothing_global():
    assert run_python(LEAVES_ALONE).stdout == "left alone\n"


def test_every_logger_of_ours_is_under_our_name():
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger":
                [argument] = node.args
                assert isinstance(argument, ast.Constant) and str(argument.value).startswith("interlock.")


# --- the public API, pinned: a change here is a decision ---

API = {
    "Annotations",
    "Audio",
    "AudioContent",
    "AuthRequired",
    "AuthorizationFailed",
    "AuthorizationServer",
    "CallTimeout",
    "CannotAsk",
    "Change",
    "Client",
    "ClientCredentials",
    "Command",
    "Completion",
    "Concurrency",
    "ConfigError",
    "ConnectionEnded",
    "ConnectionLost",
    "Conversation",
    "Context",
    "Declined",
    "Denied",
    "EmbeddedResource",
    "EnterpriseManaged",
    "Exchange",
    "File",
    "HandshakeFailed",
    "Host",
    "HostTools",
    "Icon",
    "IdentityProvider",
    "Image",
    "ImageContent",
    "InterlockError",
    "Introspection",
    "IssuerApp",
    "Item",
    "Keepalive",
    "KnownClient",
    "LoginRequired",
    "OAuth",
    "OutcomeUnknown",
    "LocalError",
    "NotOpen",
    "Patience",
    "PeerClosed",
    "Policy",
    "Principal",
    "PromptMessage",
    "Protection",
    "Rate",
    "RateLimits",
    "Refused",
    "RemoteError",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
    "Rule",
    "Seat",
    "Server",
    "StateChange",
    "SpawnFailed",
    "Suggestions",
    "Supervision",
    "SyncClient",
    "TextContent",
    "ToolAnnotations",
    "ToolError",
    "ToolResult",
    "Workload",
    "WorkloadIdentity",
    "WorkloadPlatform",
    "__version__",
    "files",
    "hash_password",
    "hash_secret",
    "read_config",
}
MEMBERS = {
    "Client": "call_tool capabilities close complete get_prompt instructions list_prompts list_resource_templates "
    "list_resources list_tools listen notify open ping read_resource request revision roots_changed server_info "
    "set_log_level state subscribe",
    "Command": "args close_seconds cwd env env_policy environment hidden hide of program shown terminate_seconds",
    "Context": "app cancelled client connection deadline elicit elicit_url exchange headers log once principal "
    "progress read_resource release_stream request roots sample trace within_roots",
    "Exchange": "ask begin_once deadline end_once home live meta method notify once outlet params patience peer raw "
    "redact release_stream silence timer",
    "Host": "add call_tool close complete events get_prompt leaves missing read_resource remove restart review roots "
    "start stop take_back turn use_tool",
    "Keepalive": "interval losses timeout",
    "Patience": "idle total",
    "Seat": "allowed_hosts auth headers idle_seconds revision start_seconds supervision target timeout",
    "Server": "add_prompt add_resource add_tool app_lifespan asgi capabilities completion connection_lifespan "
    "instructions method mount notification param_headers prompt relay_changes remove_prompt "
    "remove_resource remove_tool request_lifespan resource resource_changed run scopes_of stop_listening tool use "
    "visibility_changed visible",
}
PARAMETERS = {
    "Client": "target headers auth allowed_hosts revision name version title elicit elicit_url sample roots "
    "experimental extensions on_notification on_log on_change log_level timeout connect_timeout probe_timeout "
    "keepalive supervise on_state limits verdicts",
    "Host": "servers config policy user audit home budget models roots sampling context opener principal "
    "cap bounds log_level at_once start_wait on_event",
    "Server": "name version title description icons website_url instructions revisions experimental extensions "
    "page_size cache_seconds cache_scope identify strict threads state_keys state_seconds store visible auth guards",
    "Command": "args env env_policy cwd close_seconds terminate_seconds hide shown",
    "IssuerApp": "server allowed_hosts allowed_origins",
    "Keepalive": "interval timeout losses",
    "Patience": "idle total",
}


def test_the_public_names_are_these():
    assert set(interlock.__all__) == API
    assert dir(interlock) == sorted(API)


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_the_public_members_are_these(name):
    found = {member for member in dir(getattr(interlock, name)) if not member.startswith("_")}
    assert found == set(MEMBERS[name].split())


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_the_parameters_are_these_in_this_order(name):
    assert list(inspect.signature(getattr(interlock, name)).parameters) == PARAMETERS[name].split()


# --- tests ---

FIXED_SLEEPS = {  # tests that wait for a time, and why no event tells that it is over
    "interop/test_our_http_client.py::test_sessions_and_resumed_streams_of_the_typescript_sdk": "a timer of a peer",
    "support/test_watchdog.py::test_one_that_is_over_is_over_and_the_one_around_it_goes_on": "hanging is the subject",
    "support/test_watchdog.py::test_who_catches_it_is_told_again": "hanging is the subject",
    "web/outbound/test_deadlines.py::test_a_deadline_does_not_pass_while_it_is_paused": "time is the subject",
    "web/outbound/test_deadlines.py::test_an_end_is_not_put_off": "time that passes is the subject",
    "web/outbound/test_deadlines.py::test_it_passes_afterwards": "time that passes is the subject",
    "transport/http/cluster/test_sessions.py::test_the_end_of_a_session_cancels_what_runs_at_another_worker": "threads",
}


def fixed_sleeps_in(path: Path) -> Iterator[str]:
    """Tests that sleep for a time of their own: not in a loop that asks for something, not in virtual time."""
    for test in ast.walk(tree_of(path)):
        if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) or not test.name.startswith("test_"):
            continue
        virtual = any("virtual_time" in ast.unparse(decorator) for decorator in test.decorator_list)
        if not virtual and any(map(sleeps, test.body)):
            yield f"{path.relative_to(TESTS).as_posix()}::{test.name}"


def sleeps(node: ast.AST) -> bool:
    if isinstance(node, ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False  # it polls, or it is what a handler does
    value = node.value if isinstance(node, ast.Expr) else None
    call = value.value if isinstance(value, ast.Await) else value
    if isinstance(call, ast.Call) and ast.unparse(call.func) in ("asyncio.sleep", "time.sleep"):
        return ast.unparse(call.args[0]) != "0"
    return any(map(sleeps, ast.iter_child_nodes(node)))


def test_tests_wait_for_events_and_not_for_time():
    found = {name for path in sorted(TESTS.rglob("test_*.py")) for name in fixed_sleeps_in(path)}
    assert found - set(FIXED_SLEEPS) == set(), "use until_idle, virtual_time or an event"
    assert set(FIXED_SLEEPS) - found == set(), "no longer needed"
