"""Short moments: lists have many columns, and 30.11.2026 14:05 is how it is written in an office."""

DATE_FORMAT = "d.m.Y"
DATETIME_FORMAT = "d.m.Y H:i"
