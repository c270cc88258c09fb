"""wire/types/prompts.py: one message, of one of two roles, with one block."""

import msgspec
import pytest

from interlock.wire.types.prompts import PromptMessage


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_is_of_the_user_or_the_assistant(role):
    assert PromptMessage(role=role, content={"type": "text", "text": "x"}).role == role


@pytest.mark.parametrize("role", ["system", "", None, 7])
def test_it_is_of_nobody_else(role):
    with pytest.raises(ValueError):
        PromptMessage(role=role, content={})
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"role": role, "content": {}}, PromptMessage)


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": "x"}], ()])
def test_its_content_is_one_block(content):
    # A list is for sampling (2025-11-25), never for prompts in any revision.
    with pytest.raises(ValueError, match="one block"):
        PromptMessage(role="user", content=content)
