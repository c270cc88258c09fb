"""Which variables of the user's environment a child process gets, and which it was not given and may need.

A program gets what it needs to run and what it needs to reach the network as its user does: the certificates to trust
and the proxies to use. Everything else, such as keys of services, is withheld unless it is given by name.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import unquote

from ...wire.lazy_regex import pattern
from ...wire.redaction import REDACTED

__all__ = [
    "MINIMAL_ENVIRONMENT",
    "NETWORK_ENVIRONMENT",
    "is_proxy_variable",
    "minimal_environment",
    "proxy_secrets",
    "redact_proxy",
    "withheld_variables",
]

MINIMAL_ENVIRONMENT = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"),
    *("TMPDIR", "TZ", "XDG_RUNTIME_DIR", "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA"),
    *("NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR"),
)
"""What a program needs to find itself and its home. None of it is a secret."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
NETWORK_ENVIRONMENT = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
)
"""What a program needs to reach the network where the user's own programs do. A proxy URL may hold a password."""

_MAX_WITHHELD = 8  # names in one error
_MIN_PASSWORD = 4  # characters: a shorter one would be hidden in the middle of other words
# Names by which programs find their files, services and credentials; variables of a desktop or a terminal are not.
_PLAUSIBLE = pattern(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|PAT|DSN|URL|URI|HOST|PORT|ENDPOINT|REGION|PROFILE|PROJECT"
    r"|HOME|ROOT|DIR|PATH|CONFIG|FILE)$"
    r"|^(?:PYTHON|PIP_|UV_|NODE_|NPM_CONFIG_|npm_config_|NVM_|VIRTUAL_ENV|CONDA_|LD_|DYLD_|JAVA_|DOTNET_|DOCKER_|AWS_"
    r"|AZURE_|GOOGLE_|PG)"
)
_UNRELATED = pattern(
    r"^(?:XDG_|SSH_|GPG_|DBUS_|GNOME_|GTK_|QT_|KDE_|DESKTOP_|WINDOW|TERM|VTE_|TMUX|STY|LESS|MAIL|OLDPWD|PWD|SHLVL|COLORTERM|"
    r"WAYLAND_|DISPLAY|SUDO_|LS_|HIST|PYTEST_|INTERLOCK_)"
)
_WORD = pattern(r"[A-Za-z_][A-Za-z0-9_]{1,63}")
_PROXY = pattern(r"((?:[A-Za-z][A-Za-z0-9+.-]{0,31}://)?)([^\s]{1,4096})@([^\s@]{0,4096})")


def minimal_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Of `environ`, what every program gets."""
    names = (*MINIMAL_ENVIRONMENT, *NETWORK_ENVIRONMENT)
    return {name: environ[name] for name in names if name in environ}


# --- proxies --------------------------------------------------------------------------------------


def is_proxy_variable(name: str) -> bool:
    """Does its value name a proxy? A program's own variables too: `npm_config_https_proxy`."""
    return name.lower().endswith("proxy")


def redact_proxy(value: str) -> str:
    """The same proxy without its user and password, with or without a scheme. Where it is not clear which part is the
    host, nothing of it is shown: a path with an `@` could pass for one."""
    found = _PROXY.fullmatch(value)
    if found is None:
        return REDACTED if "@" in value else value
    scheme, userinfo, host = found.groups()
    return REDACTED if any(each in userinfo for each in "/?#\\") else f"{scheme}{REDACTED}@{host}"


def proxy_secrets(variables: Mapping[str, str]) -> list[str]:
    """Texts of proxy URLs that are never shown: the password, as it is written and as programs read it, and the
    credentials as they are sent. The longest first, so that no part of one is left."""
    found: set[str] = set()
    for name, value in variables.items():
        proxy = _PROXY.fullmatch(value) if is_proxy_variable(name) else None
        if proxy is not None:
            found |= _forms_of(proxy[2])
    return sorted(found, key=len, reverse=True)


def _forms_of(userinfo: str) -> set[str]:
    forms = {userinfo, unquote(userinfo)}
    sent = {base64.b64encode(each.encode("utf-8", "surrogateescape")).decode() for each in forms}
    passwords = {each.partition(":")[2] for each in (userinfo, unquote(userinfo))}
    return {f"{each}@" for each in forms} | sent | {each for each in passwords if len(each) >= _MIN_PASSWORD}


# --- what was withheld ----------------------------------------------------------------------------


def withheld_variables(environ: Mapping[str, str], given: Mapping[str, str], stderr: str = "") -> tuple[str, ...]:
    """Names of `environ` that a process did not get and may have needed, at most eight. Those that its `stderr` names
    come first."""
    missing = {name for name in environ if name not in given and environ[name] and _WORD.fullmatch(name)}
    named = missing & set(_WORD.findall(stderr)) if missing else missing
    plausible = {name for name in missing - named if _PLAUSIBLE.search(name) and not _UNRELATED.search(name)}
    return (*sorted(named), *sorted(plausible))[:_MAX_WITHHELD]
