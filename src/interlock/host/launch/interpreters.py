"""What an interpreter is given on its command line: code in the words themselves, or a file that holds it.

A question about a launch names the words that are code (warnings.py), and permission for it is bound to the content of
a script that the words name (launch.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ...wire.lazy_regex import pattern

__all__ = ["base_name", "inline_code", "scripts_in"]

_MAX_OPTIONS = 256  # words after an interpreter that are read; beyond it the rest is taken for code
_DATA = "data:"  # a URL that is the code itself
_ENDINGS = (".exe", ".cmd", ".bat", ".ps1")
_VERSION = pattern(r"[0-9][0-9.]*t?(?:-dbg)?$")  # python3.14t, python3-dbg


class Interpreter(msgspec.Struct, frozen=True):
    """How it reads its options. Letters are those of short options, which may stand together (`-lc`)."""

    code: str = ""
    """Letters that are followed by code."""
    long: tuple[str, ...] = ()
    """Long options, and words in their place, that are followed by code."""
    valued: str = ""
    """Letters that are followed by another word, which is not a script."""
    module: str = ""
    """Letters that name a module: there is no script then."""
    valued_long: tuple[str, ...] = ()
    """Long options that are followed by another word, which is not a script."""
    verbs: tuple[str, ...] = ()
    """Words that may stand before the script."""
    takes_script: bool = True
    """False: the first other word is a program or a package, not a file with code."""


_SHELL = Interpreter(code="c", long=("--command",), valued="oO", valued_long=("--rcfile", "--init-file"))
_PYTHON = Interpreter(code="c", valued="WX", module="m", valued_long=("--check-hash-based-pycs",))
_POWERSHELL = Interpreter(long=("-command", "-c", "-encodedcommand", "-enc", "-ec", "-e"))
_OF_NODE = (
    *("--require", "--import", "--loader", "--experimental-loader", "--env-file", "--env-file-if-exists"),
    *("--conditions", "--input-type", "--experimental-default-type", "--title", "--icu-data-dir", "--openssl-config"),
    *("--allow-fs-read", "--allow-fs-write", "--cpu-prof-dir", "--cpu-prof-interval", "--cpu-prof-name"),
    *("--diagnostic-dir", "--disable-proto", "--disable-warning", "--dns-result-order", "--experimental-policy"),
    *("--heap-prof-dir", "--heap-prof-interval", "--heap-prof-name", "--heapsnapshot-near-heap-limit"),
    *(
        "--heapsnapshot-signal",
        "--inspect-port",
        "--inspect-publish-uid",
        "--localstorage-file",
        "--max-http-header-size",
    ),
    *("--network-family-autoselection-attempt-timeout", "--policy-integrity", "--redirect-warnings", "--report-dir"),
    *("--report-directory", "--report-filename", "--report-signal", "--secure-heap", "--secure-heap-min"),
    *("--snapshot-blob", "--test-concurrency", "--test-name-pattern", "--test-reporter"),
    *("--test-reporter-destination", "--test-shard", "--test-timeout", "--tls-cipher-list", "--tls-keylog"),
    *("--trace-event-categories", "--trace-event-file-pattern", "--trace-require-module", "--unhandled-rejections"),
    *("--use-largepages", "--watch-path", "--build-snapshot-config", "--experimental-sea-config"),
)
_NODE = Interpreter(code="ep", long=("--eval", "--print"), valued="rC", valued_long=_OF_NODE, verbs=("run",))
_OF_UV = ("--with", "--python", "--project", "--env-file", "--from", "--directory", "--extra", "--group")
_INTERPRETERS: dict[str, Interpreter] = {
    **dict.fromkeys(("python", "pypy", "pythonw", "py", "ipython"), _PYTHON),
    **dict.fromkeys(("node", "nodejs", "bun", "tsx", "ts-node"), _NODE),
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "fish", "ksh"), _SHELL),
    **dict.fromkeys(("powershell", "pwsh"), _POWERSHELL),
    **dict.fromkeys(
        ("npx", "npm"), Interpreter(code="c", long=("--call",), valued="pw", verbs=("exec", "x"), takes_script=False)
    ),
    "cmd": Interpreter(long=("/c", "/k"), verbs=("/a", "/d", "/e:on", "/q", "/s", "/u", "/v:on")),
    "env": Interpreter(
        code="S", long=("--split-string",), valued="uC", valued_long=("--unset", "--chdir"), takes_script=False
    ),
    "deno": Interpreter(long=("eval",), valued_long=("--config", "--import-map", "--lock"), verbs=("run", "serve")),
    "perl": Interpreter(code="eE", valued="I"),
    "ruby": Interpreter(code="e", valued="IrC"),
    "php": Interpreter(code="rBRE", long=("--run",), valued="cdz"),
    "lua": Interpreter(code="e", valued="l"),
    "julia": Interpreter(code="eE", long=("--eval", "--print")),
    "rscript": Interpreter(code="e"),
    "osascript": Interpreter(code="e", valued="l"),
    "uv": Interpreter(valued_long=_OF_UV, verbs=("run",)),
}


def base_name(word: str) -> str:
    """What a program is called, wherever it is: `/usr/bin/Python3.exe` is `python3`."""
    name = word.replace("\\", "/").rpartition("/")[2].lower()
    return next((name[: -len(ending)] for ending in _ENDINGS if name.endswith(ending)), name)


def inline_code(words: Sequence[str]) -> list[tuple[str, str]]:
    """Programs among the words that run code which stands in the words: each with the option that says so."""
    return [(program, option) for program, option, _ in _readings(words) if option]


def scripts_in(words: Sequence[str]) -> list[str]:
    """The words that interpreters among them take for a file with code."""
    return [script for _, _, script in _readings(words) if script]


def _readings(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    for number, word in enumerate(words):
        name = base_name(word)
        interpreter = _INTERPRETERS.get(name) or _INTERPRETERS.get(_VERSION.sub("", name))
        if interpreter is not None:
            yield word, *_read(interpreter, words, number + 1)


def _read(interpreter: Interpreter, words: Sequence[str], at: int) -> tuple[str, str]:
    """The option before the code, or the script, from the word `at` on; neither where there is neither."""
    end = at + _MAX_OPTIONS
    while at < len(words):
        word, at = words[at], at + 1
        if at > end:
            return word, ""
        option, equals, value = word.partition("=")
        if option.lower() in interpreter.long:
            return option, ""
        is_valued = option.replace("_", "-") in interpreter.valued_long  # node takes both
        if is_valued and not equals:
            value, at = words[at] if at < len(words) else "", at + 1
        if word.startswith(_DATA) or (is_valued and value.startswith(_DATA)):
            return _DATA, ""  # node --import data:…, deno run data:…
        if word == "--":
            return "", words[at] if at < len(words) else ""
        if word.startswith("--") or word in interpreter.verbs:
            continue
        if not word.startswith(("-", "+")):  # a shell takes +x as well
            return "", word if interpreter.takes_script else ""
        for place, letter in enumerate(word[1:], 2):
            if letter in interpreter.code:
                return word[:place], ""
            if letter in interpreter.module:
                return "", ""
            if letter in interpreter.valued:
                at += place == len(word)
                break
    return "", ""
