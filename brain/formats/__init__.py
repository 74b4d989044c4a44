"""Formats that differ from what Django brings, by language."""
