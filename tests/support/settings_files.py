"""Settings files as people have them: any layout, comments anywhere, and how to see that nothing else changed."""

from __future__ import annotations

import json
from itertools import takewhile
from random import Random

__all__ = ["Hand", "is_kept", "shuffled"]

COMMENTS = ("// x {", "/* , */", '/* " */ // "mine": {}', "// ü  ", "/**/", "/* a\n b */")


class Hand:
    """Writes JSON with blanks, line breaks and comments wherever it allows them."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.newline = self.random.choice(["\n", "\r\n"])
        self.comments = self.random.random() < 0.5

    def gap(self):
        parts = []
        for _ in range(self.random.choice((0, 0, 1, 2))):
            comment = self.random.choice(COMMENTS) if self.comments and self.random.random() < 0.5 else ""
            breaks = "//" in comment or self.random.random() < 0.5
            parts.append(self.blanks() + comment + (self.newline if breaks else ""))
        return "".join(parts) + self.blanks()

    def blanks(self):
        return self.random.choice(("", "", " ", "  ", "\t"))

    def write(self, value):
        if isinstance(value, dict):
            return self.group(
                "{}", [f"{self.scalar(name)}{self.gap()}:{self.gap()}{self.write(value[name])}" for name in value]
            )
        return self.group("[]", [self.write(each) for each in value]) if isinstance(value, list) else self.scalar(value)

    def group(self, ends, inner):
        last = "," if inner and self.random.random() < 0.3 else ""
        return ends[0] + ",".join(self.gap() + each + self.gap() for each in inner) + last + self.gap() + ends[1]

    def scalar(self, value):
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5)

    def file(self, members):
        return self.gap() + self.write(members) + self.gap()


def shuffled(seed, members):
    names = list(members)
    Random(seed).shuffle(names)
    return Hand(seed).file({name: members[name] for name in names})


def same_from_left(one, other):
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])


def is_kept(before, after):
    """`after` is `before` with one piece put in and perhaps, before that, a comma."""
    start = same_from_left(before, after)
    if after.endswith(before[start:]):
        return True
    middle = same_from_left(before[start:], after[start + 1 :])
    return after[start] == "," and after.endswith(before[start + middle :])
