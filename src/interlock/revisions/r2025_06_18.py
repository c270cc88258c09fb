"""2025-06-18: no batches any more; elicitation, structured output, resource links, titles, `_meta` on types."""

from __future__ import annotations

from .r2025_03_26 import R2025_03_26

__all__ = ["R2025_06_18"]

R2025_06_18 = R2025_03_26.evolve(
    "2025-06-18",
    batches=False,
    own_issuer=False,
    ask={"elicitation/create": "elicitation"},
    client_can=["elicitation"],
    blocks=["resource_link"],
    reveal=[
        "Tool.title",
        "Tool.outputSchema",
        "Tool._meta",
        "CallToolResult.structuredContent",
        "Resource.title",
        "Resource._meta",
        "ResourceTemplate.title",
        "ResourceTemplate._meta",
        "ResourceContents._meta",
        "Prompt.title",
        "Prompt._meta",
        "PromptArgument.title",
        "Content._meta",
        "Annotations.lastModified",
        "Implementation.title",
        "CompleteParams.context",
        "PromptRef.title",
    ],
)
