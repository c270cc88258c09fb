"""The nouns of MCP in their newest form, one file each. The revisions translate at the edge."""
