"""wire/signatures.py: the parameters of a callable, whatever its annotations name."""

import pytest

from interlock.wire.signatures import signature_of
from support.deferred import define, needs_deferred


class Callee:
    def __call__(self, a, *, b=1): ...


@pytest.mark.parametrize("given", [lambda a, *, b=1: None, Callee()])
def test_parameters_are_read(given):
    assert list(signature_of(given).parameters) == ["a", "b"]


def test_what_has_no_signature_is_told_as_python_tells_it():
    with pytest.raises(TypeError):
        signature_of(7)
    with pytest.raises(ValueError):
        signature_of(type)


@needs_deferred
def test_names_for_type_checkers_alone_do_not_matter():
    function = define("def f(a: Missing, b: list[Missing.inner] = ()) -> Missing: ...")
    assert list(signature_of(function).parameters) == ["a", "b"]
