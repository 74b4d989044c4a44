"""What the official test suite of MCP calls by fixed names and without a key; never part of an installation."""
