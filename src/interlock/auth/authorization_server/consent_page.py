"""The page on which a person says yes or no. Whatever a client says of itself is text there, and nothing else.

It shows the host that the browser will be sent to (AUTH-SEC-018), warns where that is only this machine
(AUTH-SEC-017), cannot be framed, runs no script and posts to nobody but us.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from urllib.parse import urlsplit

from .client_metadata import KnownClient
from .redirect_uris import form_target, is_local
from .responses import Reply

__all__ = ["consent_page", "error_page"]

_STYLE = """body{font:16px/1.5 system-ui,sans-serif;margin:0;background:#f4f4f1;color:#222}
main{max-width:26rem;margin:8vh auto;padding:1.5rem 2rem;background:#fff;border:1px solid #d8d8d2;border-radius:8px}
h1{font-size:1.25rem}dt{font-size:.8rem;color:#666}dd{margin:0 0 .7rem;overflow-wrap:anywhere}
label{display:block;margin:.6rem 0}input{width:100%;box-sizing:border-box;padding:.4rem;font:inherit}
button{padding:.5rem 1.2rem;font:inherit;margin:.8rem .6rem 0 0}.warn{background:#fff4d6;padding:.5rem .8rem}
.wrong{background:#fde4e1;padding:.5rem .8rem}"""
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def consent_page(
    client: KnownClient,
    redirect_uri: str,
    scopes: Iterable[str],
    resource: str,
    ticket: str,
    *,
    action: str,
    wrong: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    status: int = 200,
) -> Reply:
    """Who wants what, for which server, and where it goes; and the form to answer with."""
    listed = "".join(f"<li>{escape(scope)}</li>" for scope in scopes) or "<li>access without named scopes</li>"
    told = f'<p class="wrong" role="alert">{escape(wrong)}</p>' if wrong else ""
    body = f"""<h1>{escape(client.name or "A program without a name")} wants to use a server as you</h1>{told}
<dl><dt>Program</dt><dd>{escape(_origin_of(client))}</dd>
<dt>You will be sent to</dt><dd><strong>{escape(_host_of(redirect_uri))}</strong><br>{escape(redirect_uri)}</dd>
<dt>Server</dt><dd>{escape(resource)}</dd><dt>It asks for</dt><dd><ul>{listed}</ul></dd></dl>{_warning(redirect_uri)}
<form method="post" action="{escape(action)}"><input type="hidden" name="ticket" value="{escape(ticket)}">
<label>Name <input name="user" autocomplete="username" maxlength="200"></label>
<label>Password <input name="password" type="password" autocomplete="current-password" maxlength="1024"></label>
<button name="decision" value="allow">Allow</button><button name="decision" value="deny">Deny</button></form>"""
    return _page(status, "Allow access?", body, form_target(redirect_uri), headers)


def error_page(told: str, status: int = 400) -> Reply:
    """What is wrong, for a person; nobody is sent anywhere."""
    body = f"<h1>This cannot go on</h1><p>{escape(told)}</p><p>Go back to the program and begin again.</p>"
    return _page(status, "Error", body, None, ())


def _origin_of(client: KnownClient) -> str:
    if client.kind == "owner":
        return f"{client.id} (known to this server)"
    if client.kind == "document":
        return client.id
    return "registered itself; nobody has checked its name"


def _host_of(redirect_uri: str) -> str:
    parts = urlsplit(redirect_uri)
    return parts.netloc if parts.scheme in ("http", "https") else f"a program on this device ({parts.scheme}:)"


def _warning(redirect_uri: str) -> str:
    if not is_local(redirect_uri) and urlsplit(redirect_uri).scheme == "https":
        return ""
    told = "Any program on this device could pretend to be this one. Go on only if you started it just now."
    return f'<p class="warn">{told}</p>'


def _page(status: int, title: str, body: str, target: str | None, headers: tuple[tuple[str, str], ...]) -> Reply:
    allowed = f"'self' {target}" if target else "'none'"
    policy = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action {allowed}; base-uri 'none'"
    html = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>
<body><main>{body}</main></body></html>"""
    fixed = (
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", f"{policy}; frame-ancestors 'none'"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),  # with "no-referrer" a browser would post with the origin "null"
        ("cache-control", "no-store"),
    )
    return Reply(status, (*fixed, *headers), html.encode())
