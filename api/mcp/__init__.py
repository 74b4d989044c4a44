"""MCP: the tools, memories as resources, prompts and completions, for the clients of both eras of the protocol."""
