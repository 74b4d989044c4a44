"""Who calls, where OAuth is on: an access key as ever, or at MCP a token that stands for one."""

from urllib.parse import urlsplit

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.request import Request

from api.authentication import AccessKeyAuthentication
from memories.errors import NotSignedIn
from memories.models import AccessKey
from memories.principal import Principal
from oauth.addresses import absolute, resource
from oauth.models import Connection
from oauth.validator import SCOPE


class KeyOrTokenAuthentication(AccessKeyAuthentication):
    """`Authorization: Bearer <key or token>`."""

    def authenticate(self, request: Request) -> tuple[Principal, AccessKey] | None:
        """The principal and the key. Tokens are for MCP: elsewhere they are no more than unknown keys."""
        scheme, _blank, presented = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        token = presented.strip()
        at_mcp = request.path.rstrip("/") == urlsplit(resource()).path
        if scheme.lower() != "bearer" or token.startswith("brk_") or not at_mcp:
            return super().authenticate(request)
        key = Connection.objects.key_of(token)
        if key is None:
            raise NotSignedIn(_("The token is unknown, expired or revoked."))
        key.note_use(timezone.now())
        return key.principal(), key

    def authenticate_header(self, request: Request) -> str:
        """What 401 names as the ways in (RFC 9728)."""
        about = absolute("oauth:protected-resource")
        return f'{super().authenticate_header(request)}, resource_metadata="{about}", scope="{SCOPE}"'
