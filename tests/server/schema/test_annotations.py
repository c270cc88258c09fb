"""server/schema/annotations.py: what other libraries say in `Annotated`, without having them.

The classes below have the names, modules and attributes of the real ones.
"""

import collections.abc
import dataclasses
import datetime
import re
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from interlock.server.schema.annotations import NO_DEFAULT, Made, default_of, optional, readable
from interlock.wire.errors import LocalError


def foreign(module: str, name: str, **members: Any) -> Any:
    kind = dataclasses.make_dataclass(name, members, frozen=True)
    kind.__module__ = module
    return kind(**members)


def limit(**members: Any) -> Any:
    return foreign("annotated_types", "Limit", **members)


class Field:
    """pydantic's FieldInfo."""

    def __init__(self, default: Any = NO_DEFAULT, *metadata: Any, **members: Any) -> None:
        self.default, self.metadata, self.default_factory = default, list(metadata), None
        self.title = self.description = self.examples = self.alias = self.validation_alias = None
        self.json_schema_extra = None
        self.__dict__.update(members)

    def is_required(self) -> bool:
        return self.default is NO_DEFAULT and self.default_factory is None


Field.__module__ = "pydantic.fields"


@pytest.mark.parametrize(
    ("hint", "meant"),
    [
        (int, int),
        (Annotated[int, "How many"], Annotated[int, Meta(description="How many")]),
        (Annotated[int, limit(ge=1)], Annotated[int, Meta(ge=1)]),
        (Annotated[int, limit(gt=1, ge=None, lt=None, le=5)], Annotated[int, Meta(gt=1, le=5)]),
        (Annotated[str, limit(min_length=0, max_length=5)], Annotated[str, Meta(max_length=5)]),
        (Annotated[str, limit(pattern=re.compile("^a"))], Annotated[str, Meta(pattern="^a")]),
        (Annotated[float, limit(multiple_of=2)], Annotated[float, Meta(multiple_of=2)]),
        (Annotated[datetime.datetime, limit(tz=...)], Annotated[datetime.datetime, Meta(tz=True)]),
        (list[Annotated[int, limit(ge=1)]], list[Annotated[int, Meta(ge=1)]]),
        (dict[str, Annotated[int, limit(ge=1)]], dict[str, Annotated[int, Meta(ge=1)]]),
        (Annotated[int, limit(ge=1)] | None, Annotated[int, Meta(ge=1)] | None),
        (Annotated[int | None, limit(ge=1)], Annotated[int, Meta(ge=1)] | None),
        (Annotated[str | list[int] | None, limit(min_length=2)],
         Annotated[str, Meta(min_length=2)] | Annotated[list[int], Meta(min_length=2)] | None),
        (Annotated[int, Field(description="d", metadata=[limit(ge=1), limit(le=5)])],
         Annotated[int, Meta(ge=1, le=5), Meta(description="d")]),
        (Annotated[int, foreign("typing_extensions", "Doc", documentation="d")], Annotated[int, Meta(description="d")]),
        (Annotated[int, foreign("annotated_types", "Strict", strict=True)], int),
        (Annotated[int, foreign("elsewhere", "Column", primary=True)], int),
        (Annotated[int, Meta(ge=1), "first", Meta(description="second")],
         Annotated[int, Meta(ge=1), Meta(description="second")]),
        (collections.abc.Iterable[int], list[int]),
        (Literal["b", "a"], Literal["b", "a"]),
        (collections.abc.Callable[[int], str], collections.abc.Callable[[int], str]),
    ],
)  # fmt: skip
def test_what_is_meant(hint, meant):
    assert readable(hint) == meant


@pytest.mark.parametrize(
    "extra",
    [
        foreign("annotated_types", "Predicate", func=bool),
        foreign("annotated_types", "LowerCase"),
        foreign("pydantic.functional_validators", "AfterValidator", func=bool),
        foreign("pydantic.types", "StringConstraints", strip_whitespace=True, min_length=1),
        foreign("annotated_types", "Timezone", tz="Europe/Vienna"),
        Field(alias="other"),
        Field(validation_alias="other"),
        Field(metadata=[foreign("annotated_types", "Predicate", func=bool)]),
    ],
)
def test_a_check_that_cannot_be_kept_is_refused_and_not_lost(extra):
    with pytest.raises(LocalError):
        readable(Annotated[str, extra])


def test_a_limit_that_fits_nothing_is_refused():
    with pytest.raises(LocalError, match="ge fits no member"):
        readable(Annotated[str | None, limit(ge=1)])


def test_a_default_may_say_more_than_a_value():
    assert default_of(5) == (5, ())
    required, said = default_of(Field(description="d"))
    assert required is NO_DEFAULT and said[0].description == "d"
    assert default_of(Field(5))[0] == 5
    made, _ = default_of(Field(default_factory=list))
    assert isinstance(made, Made) and made.make() == []


def test_none_is_added_where_it_is_not_there_yet():
    assert optional(int) == int | None
    for hint in (int | None, Any, Annotated[int | None, Meta(description="d")]):
        assert optional(hint) is hint
