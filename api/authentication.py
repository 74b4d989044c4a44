"""Who calls: the access key of the Authorization header."""

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from memories.errors import NotSignedIn
from memories.models import AccessKey
from memories.principal import Principal


class AccessKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <key>`. A key anywhere else is not looked for."""

    def authenticate(self, request: Request) -> tuple[Principal, AccessKey] | None:
        """The principal and the key. Raises NotSignedIn for a header that is no usable key; None without a header."""
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        scheme, _blank, presented = header.partition(" ")
        if scheme.lower() != "bearer":
            raise NotSignedIn(_("Send the access key as: Authorization: Bearer <key>."))
        key: AccessKey | None = AccessKey.objects.find(presented.strip())
        if key is None:
            raise NotSignedIn(_("The access key is unknown, expired or revoked."))
        key.note_use(timezone.now())
        return key.principal(), key

    def authenticate_header(self, request: Request) -> str:
        """What 401 names as the way in."""
        del request
        return 'Bearer realm="brain"'
