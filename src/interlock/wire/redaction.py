"""What looks like a secret is taken out of text that leaves the process (server/utilities/logging#security).

No pattern knows every secret, nor what is personal: the code that logs is responsible, this catches what slips through.
Parts of a pattern are bounded, or the next character alone decides how it goes on: the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from .lazy_regex import pattern

__all__ = ["REDACTED", "may_hold_secrets", "redact_secrets", "redact_url_passwords"]

REDACTED = "[redacted]"

_WORDS = (
    r"passwords?|passwd|passphrase|pwd|secret|token|credentials?|authorization"
    r"|api[_ -]?key|access[_ -]?key|private[_ -]?key|secret[_ -]?key|session[_ -]?id"
)
_VALUE = r"""(?:"[^"]{0,4096}"?|'[^']{0,4096}'?|(?:(?:basic|bearer|digest|token)\s{1,4})?[^\s,;&"'<>{}\]]{1,4096})"""
_PREFIXES = (
    r"sk-|sk_live_|sk_test_|rk_live_|whsec_|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|AKIA|ASIA|AIza|ya29\."
    r"|npm_|pypi-|hf_|dop_v1_|shpat_|SG\.|dckr_pat_|lin_api_"
)
_KEY_BLOCK = (  # to the end of the text, where it has none of its own
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|(?=-----END)|\Z)"
)
_BEARER = r"\b(bearer\s{1,4})(?:[\w.~+/=-]{16,}|(?=[A-Za-z.~+/=_-]{0,15}\d)[\w.~+/=-]{6,})"
_PREFIXED = rf"(?<![\w-])(?:{_PREFIXES})[\w.-]{{12,}}"
_SIGNED = r"(?<![\w-])eyJ[\w-]{6,}\.[\w-]{4,}(?:\.[\w-]*)?"  # a JSON web token
_BEGINNINGS = (  # of what `_PREFIXES` finds, in small letters
    *("sk-", "sk_live_", "sk_test_", "rk_live_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "xox", "xapp-", "akia", "asia", "aiza", "ya29.", "npm_", "pypi-", "hf_", "dop_v1_", "shpat_", "sg."),
    *("dckr_pat_", "lin_api_"),
)
_PATTERNS: list[tuple[tuple[str, ...], re.Pattern[str], str]] = [
    (("private key",), pattern(_KEY_BLOCK), REDACTED),
    (
        ("cookie",),
        pattern(r"((?:set-)?cookie\s{0,4}:\s{0,4})[^\r\n]{1,4096}", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    (
        ("pass", "pwd", "secret", "token", "credential", "authorization", "key", "session"),
        pattern(rf"""((?:{_WORDS})["']?\s{{0,4}}[:=]\s{{0,4}}){_VALUE}""", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    # a word of prose may follow as well ("bearer authentication"), so: something long, or with a digit in it
    (("bearer",), pattern(_BEARER, re.IGNORECASE | re.ASCII), rf"\1{REDACTED}"),
    (("://",), pattern(r"(://[^\s/@:?#]{0,256}:)[^\s/@]{1,256}@"), rf"\1{REDACTED}@"),
    (
        ("key=", "sig=", "signature=", "code="),
        pattern(r"([?&](?:key|sig|signature|code)=)[^\s&#]{1,4096}", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    (_BEGINNINGS, pattern(_PREFIXED, re.ASCII), REDACTED),
    (("eyj",), pattern(_SIGNED, re.ASCII), REDACTED),
]
"""Words one of which a text must hold, in small letters, for the pattern to be tried; and what stays of a match."""
_SECRET_NAMES = (
    *("password", "passwords", "passwd", "passphrase", "pwd", "secret", "secrets", "token", "credential"),
    *("credentials", "authorization", "cookie", "apikey", "accesskey", "privatekey", "secretkey", "sessionid"),
)


def _any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """One of these words; by their first letters, of which a text has to be compared with far fewer."""
    rests: dict[str, list[str]] = {}
    for word in dict.fromkeys(words):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    return pattern("|".join(f"{re.escape(first)}(?:{'|'.join(found)})" for first, found in rests.items()).encode())


_TRIGGERS = _any_of(word for words, _, _ in _PATTERNS for word in words)
_NAMES = _any_of(_SECRET_NAMES)
_SHORT = 4096  # bytes up to which it pays to look first


def may_hold_secrets(json: bytes) -> bool:
    """False: `redact_secrets` would find nothing in this JSON. Faster, and true more often than it would."""
    if len(json) > _SHORT or not json.isascii():
        return True
    small = json.lower()
    if _TRIGGERS.search(small) is not None:
        return True
    plain = small.translate(None, b"_- ")  # as names are read; each of them holds one of the words looked for above
    return len(plain) < len(small) and _NAMES.search(plain) is not None


# Only characters that a URL allows there: in a command that is shown for approval, no code can be hidden as a password.
_URL_PASSWORD = pattern(r"(://[\w.~%+-]{0,256}:)[\w.~%!*+,=-]{1,256}@", re.ASCII)


def redact_url_passwords(text: str) -> str:
    """The words of a command without the passwords of URLs among them; nothing else of it is hidden."""
    return _URL_PASSWORD.sub(rf"\1{REDACTED}@", text)


def redact_secrets(value: Any) -> Any:
    """Plain JSON without what looks like a secret: in texts, and under names that say so."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {_text(name): _member(name, member) for name, member in members.items()}
    if isinstance(value, list):
        return [redact_secrets(item) for item in cast("list[Any]", value)]
    return value


def _text(text: str) -> str:
    small = text.lower()
    for words, secret, instead in _PATTERNS:
        for word in words:  # spelled out: most texts hold none of them, and a generator costs more than the search
            if word in small:
                text = secret.sub(instead, text)
                break
    return text


def _member(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool) or not _names_secret(name):
        return redact_secrets(value)
    return REDACTED


def _names_secret(name: str) -> bool:
    """`db_password`, `apiKey`, `X-Session-Id`: what the last words say."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "").endswith(_SECRET_NAMES)
