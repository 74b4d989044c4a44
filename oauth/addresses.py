"""The addresses that OAuth speaks of; all begin with the one in BRAIN_OAUTH, whatever a request calls this server."""

from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.urls import reverse

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def issuer() -> str:
    """The authorization server."""
    address: str = settings.BRAIN_OAUTH
    return address


def resource() -> str:
    """What tokens are for: the address of MCP and nothing else."""
    return issuer() + reverse("mcp")


def absolute(name: str) -> str:
    """The address of this name in full."""
    return issuer() + reverse(name)


def names_resource(given: str) -> bool:
    """Whether a client means our resource: capitals in the host's name and a slash at the end make no difference."""
    try:
        parts = urlsplit(given)
    except ValueError:
        return False
    canonical = parts._replace(netloc=parts.netloc.lower(), path=parts.path.rstrip("/"))
    return urlunsplit(canonical) == resource()


def may_be_redirected_to(address: str) -> bool:
    """Whether a code may be sent there: over https, or to the person's own machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def origin_of(address: str) -> str:
    """Scheme, host and port of an address."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
