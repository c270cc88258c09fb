"""What in a command or an address should make a person think twice before it is started or connected to.

No list of dangers is complete, and none of them forbids anything: a launch is asked about in any case, in full. These
are the sentences that stand beside the question (security best practices, local server compromise).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from ...wire.escaping import display
from ...wire.lazy_regex import pattern
from ..gate.consent_text import quoted
from .interpreters import base_name, inline_code

__all__ = ["dangers"]

_ALWAYS = "It starts a program on this machine with all your rights: it can read, change and send whatever you can."
_RIGHTS = {"sudo", "doas", "su", "pkexec", "runas"}
_FETCHERS = {"npx", "bunx", "pnpx", "uvx", "pipx", "dlx"}
_CONTAINERS = {"docker", "podman", "nerdctl"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_OPEN_HOST = pattern(r"(?:https?://)?[^/?#$]{0,1024}\$\{")  # a reference before the path
_TEXTS: list[tuple[re.Pattern[str], str]] = [
    (pattern(r"\brm\s+-\w*[rf]|\bmkfs|\bdd\s+if=|\bformat\s+[a-z]:", re.I), "It deletes or overwrites files."),
    (pattern(r"\b(?:curl|wget|iwr|invoke-webrequest)\b", re.I), "It loads something from the network."),
    (
        pattern(r"\|\s*(?:ba|da|z|fi|k)?sh\b|\|\s*(?:python|node|perl|iex)", re.I),
        "It runs what another program prints.",
    ),
    (pattern(r"base64\s+(?:-d|--decode|-D)|-enc(?:odedcommand)?\b|frombase64string", re.I), "It runs a hidden text."),
    (
        pattern(r"\.ssh\b|id_rsa|id_ed25519|\.gnupg|\.aws\b|\.kube\b|\.netrc|/etc/(?:passwd|shadow|sudoers)|keychain"),
        "It names a place where secrets are kept.",
    ),
    (pattern(r"/dev/tcp/|\bnc\s+-\w*e|\bncat\b|\bsocat\b", re.I), "It opens a connection to be controlled from."),
]


def dangers(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """Of what a launch binds: `command` (words), `environment` and `env_policy`, or `url`; and `sources`."""
    words = [str(word) for word in cast("list[Any]", plan.get("command") or [])]
    found = _of_command(words, plan) if words else _of_url(str(plan.get("url") or ""), plan)
    return tuple(dict.fromkeys(found))


def _of_command(words: list[str], plan: Mapping[str, Any]) -> Iterator[str]:
    yield _ALWAYS
    names = [base_name(word) for word in words]
    if _RIGHTS & set(names):
        yield "It asks for the rights of another user."
    for program, option in inline_code(words):
        yield f"{quoted(program)} runs code that stands in its own arguments, after {quoted(option)}."
    if names[0] in _FETCHERS or (len(names) > 1 and names[1] in ("dlx", "exec", "x")):
        yield "It fetches a package and runs it: what runs may differ from one start to the next."
    if names[0] in _CONTAINERS and any(word.startswith("--privileged") or word in ("/:/", "/:/host") for word in words):
        yield "The container gets rights over this machine."
    sources = _sources(plan)
    if "command" in sources and "${" in words[0]:
        yield f"Which program it starts is decided by a value that is not shown: {display(sources['command'], 300)}."
    files = [where for what, where in sources.items() if what.startswith("word [") and "${file:" in where]
    if files:
        yield f"Its arguments hold the content of files, which is not shown: {display(', '.join(files), 300)}."
    text = " ".join(words)[:100_000]
    yield from (told for search, told in _TEXTS if search.search(text))
    if plan.get("env_policy") == "inherit":
        yield "It gets all variables of this process, with the secrets in them."
    if deciding := cast("Mapping[str, Any]", plan.get("deciding") or {}):
        yield f"Its variables decide which code runs: {', '.join(display(name, 80) for name in sorted(deciding))}."


def _sources(plan: Mapping[str, Any]) -> Mapping[str, str]:
    return cast("Mapping[str, str]", plan.get("sources") or {})


def _of_url(url: str, plan: Mapping[str, Any]) -> Iterator[str]:
    from_where = _sources(plan).get("url")
    if from_where is not None and _OPEN_HOST.match(url):
        yield f"Which host it contacts is decided by a value that is not shown: {display(from_where, 300)}."
    try:
        address = urlsplit(url)
        host = address.hostname or ""
    except ValueError:
        yield "The address cannot be understood."
        return
    if address.scheme == "http" and host not in _LOOPBACK:
        yield "The connection is not encrypted: everybody on the way can read and change it."
    if not host.isascii() or any(part.startswith("xn--") for part in host.split(".")):
        yield f"The name of the host has letters that may look like others: {host!a}"
