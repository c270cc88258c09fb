"""wire/types/content.py: the contents of a resource are text or bytes, never both and never nothing."""

import msgspec
import pytest

from interlock.wire.types.content import EmbeddedResource, ResourceContents


@pytest.mark.parametrize("held", [{"text": "x"}, {"blob": "aGk="}, {"text": ""}, {"blob": ""}])
def test_contents_hold_text_or_bytes(held):
    found = msgspec.convert({"uri": "a:b", **held}, ResourceContents)
    assert msgspec.to_builtins(found) == {"uri": "a:b", **held}
    assert ResourceContents(uri="a:b", **held) == found


@pytest.mark.parametrize("held", [{}, {"text": "x", "blob": "aGk="}])
def test_contents_never_hold_both_or_nothing(held):
    with pytest.raises(ValueError, match="text or blob"):
        ResourceContents(uri="a:b", **held)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"uri": "a:b", **held}, ResourceContents)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": "resource", "resource": {"uri": "a:b", **held}}, EmbeddedResource)
