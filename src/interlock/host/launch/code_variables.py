"""Environment variables that decide which code a program runs, by their names.

Loaders, interpreters, shells and package managers read them before the program itself does: permission to start a
program is bound to their values, and the question names them. No list is complete; whole families are covered by their
prefix.
"""

from __future__ import annotations

__all__ = ["decides_code"]

_PREFIXES = (
    *("LD_", "DYLD_", "GCONV_", "GLIBC_", "OPENSSL_", "SSL_CERT_"),  # loaders, and whom their downloads trust
    *("PYTHON", "PIP_", "UV_", "PIPX_", "POETRY_", "CONDA_", "VIRTUAL_ENV"),
    *("NODE_", "NPM_CONFIG_", "YARN_", "PNPM_", "BUN_", "DENO_", "ELECTRON_"),
    *("PERL", "RUBY", "GEM_", "BUNDLE_", "LUA_", "PHP", "JULIA_", "R_", "TCL"),
    *("JAVA_", "JDK_", "_JAVA_", "MAVEN_", "GRADLE_", "DOTNET_", "CORECLR_", "COR_", "COMPLUS_", "NUGET_"),
    *("GO", "CARGO_", "RUST", "GIT_", "SSH_", "BASH_", "DOCKER_", "XDG_CONFIG"),
)
_NAMES = frozenset(
    (
        *("PATH", "PATHEXT", "HOME", "USERPROFILE", "APPDATA", "SHELL", "COMSPEC", "SYSTEMROOT", "WINDIR"),
        *("ENV", "ZDOTDIR", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "PSMODULEPATH"),
        *("CLASSPATH", "EDITOR", "VISUAL", "PAGER", "BROWSER", "VIMINIT", "EXINIT", "KUBECONFIG"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "CURL_HOME"),
    )
)


def decides_code(name: str) -> bool:
    """In whatever case: npm reads `npm_config_registry`, Windows `Path`."""
    return name.upper() in _NAMES or name.upper().startswith(_PREFIXES)
