"""A model in pydantic's manner, for what must know such models without depending on the package."""

from __future__ import annotations

from typing import Any

__all__ = ["Model"]


class Model:
    """A model as pydantic makes them, as far as anybody looks."""

    def __init__(self, a: Any) -> None:
        self.a = a

    @classmethod
    def model_json_schema(cls, mode: str) -> dict[str, Any]:
        assert mode == "serialization"
        return {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if type(value.get("a")) is not int:
            raise ValueError("a is no integer")
        return cls(value["a"])

    def model_dump(self, mode: str, by_alias: bool) -> dict[str, Any]:
        assert mode == "json" and by_alias is True
        return {"a": self.a}
