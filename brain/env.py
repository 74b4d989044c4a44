"""Typed readers of the environment that fail loudly: a wrong setting stops the start, with its name."""

import os
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured

from memories.limits import WIDTHS, Limits


def whole_number(name: str, default: int, *, least: int = 1) -> int:
    """The variable as a whole number of at least `least`."""
    raw = os.environ.get(name, "")
    if not raw:
        return default
    if not (raw.isascii() and raw.isdigit()) or int(raw) < least:
        raise ImproperlyConfigured(f"{name} must be a whole number of at least {least}, not {raw!r}.")
    return int(raw)


def switch(name: str, *, default: bool) -> bool:
    """The variable as yes or no: 1, true, yes, on; 0, false, no, off."""
    raw = os.environ.get(name, "").lower()
    if not raw:
        return default
    if raw in {"1", "true", "yes", "on"}:
        return True
    if raw in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {raw!r}.")


def names(name: str) -> list[str]:
    """The variable as a list of words, separated by commas."""
    return [word.strip() for word in os.environ.get(name, "").split(",") if word.strip()]


def choice(name: str, words: Sequence[str]) -> str:
    """The variable as one of these words, or empty."""
    raw = os.environ.get(name, "").strip().lower()
    if raw and raw not in words:
        raise ImproperlyConfigured(f"{name} must be empty or one of {', '.join(words)}, not {raw!r}.")
    return raw


def public_address(name: str) -> str:
    """The variable as the address that others reach this server by, scheme and host alone, or empty."""
    raw = os.environ.get(name, "").strip().rstrip("/").lower()
    if raw and not re.fullmatch(r"https://[a-z0-9.-]+(:[0-9]+)?|http://(localhost|127\.0\.0\.1)(:[0-9]+)?", raw):
        raise ImproperlyConfigured(f"{name} must be like https://brain.example.org, without a path, not {raw!r}.")
    return raw


def needs(name: str, module: str, extra: str) -> None:
    """Refuse to start when what this variable switches on is not installed."""
    if find_spec(module) is None:
        raise ImproperlyConfigured(f"{name} needs more packages: pip install '.[{extra}]'")


def time_zone(name: str, default: str) -> str:
    """The variable as the name of a time zone that exists here."""
    zone = os.environ.get(name) or default
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise ImproperlyConfigured(f"{name}: there is no time zone {zone!r}.") from error
    return zone


def folder(name: str, default: Path) -> Path:
    """The variable as a folder, made when it is not there, readable by its owner alone."""
    path = Path(os.environ.get(name) or default).resolve()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def secret(name: str, keep_in: Path) -> str:
    """The variable, or a random secret that is made once and kept in a file only its owner can read."""
    given = os.environ.get(name, "")
    if given:
        return given
    try:
        # Two processes may start at once: the file is made whole under another name, and the first link wins.
        draft = keep_in.with_name(f"{keep_in.name}.{os.getpid()}.{secrets.token_hex(4)}")
        if not keep_in.exists():
            draft.touch(mode=0o600)
            draft.write_text(secrets.token_urlsafe(64), encoding="ascii")
            try:
                os.link(draft, keep_in)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return keep_in.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{name} is not set, and no secret can be kept in {keep_in}: {error}") from error


def limits(environment: Mapping[str, str]) -> Limits:
    """The limits: each may be set as BRAIN_LIMIT_<NAME>, such as BRAIN_LIMIT_MEMORY."""
    known = {f"BRAIN_LIMIT_{field.name.upper()}": field for field in fields(Limits)}
    unknown = sorted(name for name in environment if name.startswith("BRAIN_LIMIT_") and name not in known)
    if unknown:
        raise ImproperlyConfigured(f"Unknown limits: {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
    chosen = {field.name: whole_number(name, field.default) for name, field in known.items()}  # type: ignore[arg-type]
    for name, width in WIDTHS.items():
        if chosen[name] > width:
            raise ImproperlyConfigured(f"BRAIN_LIMIT_{name.upper()} can be at most {width}, the column's width.")
    return Limits(**chosen)
