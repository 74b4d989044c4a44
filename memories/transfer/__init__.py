"""Memories as files, out and in: a JSON line each with its whole history, tables, and other programs' formats."""

FORMAT = 1  # of the JSON lines; a reader refuses what is newer
