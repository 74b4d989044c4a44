"""The limits in force: one frozen value, read from the settings, told by `help: 1`."""

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; characters for texts, numbers for vectors, bytes for bodies."""

    kurzbeschreibung: int = 1_000
    memory: int = 1_000_000
    titel: int = 1_000
    tag_name: int = 100
    kennung: int = 255
    embedding: int = 16_000
    referenzfelder: int = 65_536
    grund: int = 1_000
    body: int = 32 * 1024 * 1024
    nesting: int = 64


# Columns have these widths, so a setting may lower these two limits but not raise them.
WIDTHS = {"tag_name": 100, "kennung": 255}


def limits() -> Limits:
    """The limits that hold for this process."""
    in_force: Limits = settings.BRAIN_LIMITS
    return in_force
