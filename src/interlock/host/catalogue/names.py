"""The names under which a model sees what servers offer.

What something is, is (server, name); the name it is shown under is made of both. APIs of models take letters, digits,
`_` and `-`, at most 64 of them, while servers may call their tools anything. So a name that can be shown as it is
becomes `server__name`, and every other one is written with what may be written and ends in `-` and a digest of what it
really is. A name never depends on which server came first:

* two that look alike (`read_1` and `read_l`, `Get` and `get`) both get a digest, so that neither is taken for the
  other, and a newcomer cannot take over the plain one;
* letters of other scripts, invisible characters and the like are never shown: what held them has a digest;
* a server's own name that ends like a digest gets one of its own, so that nobody can guess somebody else's name.

The way back is the table that `exposed` returns.
"""

from __future__ import annotations

from base64 import b32encode
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256

from ...wire.lazy_regex import pattern

__all__ = ["Identity", "LONGEST_NAME", "exposed", "looks"]

LONGEST_NAME = 64
Identity = tuple[str, str]
"""The server, by the name that its user gave it, and what it calls the thing itself."""

_BETWEEN = "__"
_PLAIN = pattern(r"[A-Za-z0-9_-]{1,60}")
_OTHER = pattern(r"[^A-Za-z0-9_-]{1,1000}")
_DIGEST = 12  # characters of five bits: 60 bits
_LIKE_DIGEST = pattern(r".*-[a-z2-7]{12}")
_LONGEST_SERVER = 24  # characters of its part where something must be cut
_ALIKE = str.maketrans({"-": "_", "0": "o", "1": "l", "i": "l", "5": "s", "8": "b", "2": "z"})


def exposed(identities: Iterable[Identity]) -> dict[str, Identity]:
    """Each with the name it is shown under, in the order given. An identity that comes twice is one."""
    unique = dict.fromkeys(identities)
    plain = {identity: _plain(identity) for identity in unique}
    alike: defaultdict[str, list[Identity]] = defaultdict(list)
    for identity, name in plain.items():
        if name is not None:
            alike[looks(name)].append(identity)
    for group in alike.values():
        if len(group) > 1:
            plain.update(dict.fromkeys(group))
    return {name or _digested(identity): identity for identity, name in plain.items()}


def looks(name: str) -> str:
    """What a hasty reader sees: names that give the same are taken for each other."""
    return name.lower().translate(_ALIKE).replace("rn", "m").replace("vv", "w").replace("cl", "d")


def _plain(identity: Identity) -> str | None:
    """The name as it is, where it says unmistakably what it stands for."""
    server, name = identity
    if not _PLAIN.fullmatch(server) or not _PLAIN.fullmatch(name) or _BETWEEN in server:
        return None
    if server.endswith("_") or name.startswith("_") or len(server) + len(name) + len(_BETWEEN) > LONGEST_NAME:
        return None
    return None if _LIKE_DIGEST.fullmatch(name) else f"{server}{_BETWEEN}{name}"


def _digested(identity: Identity) -> str:
    server, name = (_OTHER.sub("_", part).strip("_") for part in identity)
    words = f"{server[:_LONGEST_SERVER]}{_BETWEEN}{name}"[: LONGEST_NAME - _DIGEST - 1]
    return f"{words}-{_digest(identity)}"


def _digest(identity: Identity) -> str:
    """Of both parts, with their border: ("a", "bc") is not ("ab", "c")."""
    server, name = (part.encode("utf-8", "surrogatepass") for part in identity)
    found = sha256(b"%d:%s%s" % (len(server), server, name)).digest()
    return b32encode(found)[:_DIGEST].decode("ascii").lower()
