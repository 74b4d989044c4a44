"""What the toolkit asks about codes and tokens, answered by connections. Scopes say nothing here: keys do."""

import logging
from datetime import timedelta
from typing import Any

from django.contrib.admin.models import ADDITION, LogEntry
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from oauth2_provider.models import RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749 import errors

from oauth.addresses import names_resource, resource
from oauth.models import Connection, checksum

log = logging.getLogger(__name__)

SCOPE = "brain"

# Two parts of one client may renew its token at once; the slower one is refused, and no more.
_CLIENTS_RACE_FOR = timedelta(seconds=30)


class Validator(OAuth2Validator):
    """The toolkit's own, with tokens that hang on a connection and are for our resource alone."""

    def validate_scopes(
        self, client_id: str, scopes: Any, client: Any, request: Any, *args: Any, **options: Any
    ) -> bool:
        """Whatever a client asks for, it gets the one scope; whose rights that means the person says."""
        request.scopes = [SCOPE]
        return True

    def is_within_original_scope(self, scopes: Any, refresh_token: str, request: Any, *a: Any, **options: Any) -> bool:
        """The same when it asks again."""
        request.scopes = [SCOPE]
        return True

    def save_authorization_code(self, client_id: str, code: Any, request: Any, *args: Any, **options: Any) -> None:
        """Keep the code, and the connection that it begins."""
        with transaction.atomic():
            super().save_authorization_code(client_id, code, request, *args, **options)
            connection = Connection.objects.create(
                client_id=request.client.pk,
                key=request.access_key,
                granted_by=request.user.get_username(),
                code_checksum=checksum(code["code"]),
            )
            LogEntry.objects.log_actions(request.user.pk, [connection], ADDITION, single_object=True)

    def validate_code(self, client_id: str, code: str, client: Any, request: Any, *args: Any, **options: Any) -> bool:
        """Whether the code can be taken. One that was taken before has been seen by somebody else: all of it ends."""
        if super().validate_code(client_id, code, client, request, *args, **options):
            return True
        used = Connection.objects.filter(client=client.pk, code_checksum=checksum(code), family__isnull=False)
        self._end(used, "its code was sent again")
        return False

    def validate_refresh_token(self, refresh_token: str, client: Any, request: Any, *args: Any, **options: Any) -> bool:
        """Whether the token can be renewed. One that was renewed a while ago was seen by somebody else: all ends."""
        now = timezone.now()
        renewed = RefreshToken.objects.filter(token_checksum=checksum(refresh_token), revoked__isnull=False)
        if renewed.exists():
            stolen = renewed.filter(revoked__lte=now - _CLIENTS_RACE_FOR).values("token_family")
            self._end(Connection.objects.filter(family__in=stolen), "a renewed token was sent again")
            return False
        if not super().validate_refresh_token(refresh_token, client, request, *args, **options):
            return False
        family = request.refresh_token_instance.token_family
        return bool(Connection.objects.usable(now).filter(family=family).exists())

    def revoke_token(self, token: str, token_type_hint: str, request: Any, *args: Any, **options: Any) -> None:
        """A client that gives back either token gives back the connection."""
        known = checksum(token)
        given = RefreshToken.objects.filter(
            Q(token_checksum=known) | Q(access_token__token_checksum=known), application=request.client.pk
        )
        self._end(Connection.objects.filter(family__in=given.values("token_family")), "the client gave it back")

    def _end(self, connections: Any, why: str) -> None:
        for connection in connections.select_related("client", "key"):
            log.warning("Connection %d ends: %s", connection.pk, why)
            Connection.objects.filter(pk=connection.pk).end()

    def _load_application(self, client_id: str | None, request: Any) -> Any:
        """The client; none has an ID with a NUL, which PostgreSQL would not even look for."""
        return None if "\0" in (client_id or "") else super()._load_application(client_id, request)

    def _check_and_set_request_resource(self, request: Any) -> None:
        """Tokens are for our resource, whether the client names it or not; for another there are none."""
        given = [value for name, value in request.decoded_body or [] if name == "resource"]
        if not all(map(names_resource, given)):
            raise errors.CustomOAuth2Error(
                error="invalid_target", description="There are no tokens for this resource.", request=request
            )
        request.resource = [resource()]

    def _save_bearer_token(self, token: Any, request: Any, *args: Any, **options: Any) -> None:
        """Of two requests that renew one token at once, the second gets nothing: what the first got is kept hashed."""
        renewing = getattr(request, "refresh_token_instance", None)
        if renewing is not None:
            living = RefreshToken.objects.select_for_update().filter(pk=renewing.pk, revoked__isnull=True)
            if living.first() is None:
                raise errors.InvalidGrantError(request=request)
        super()._save_bearer_token(token, request, *args, **options)

    def _create_refresh_token(self, request: Any, code: str, access_token: Any, previous: Any) -> Any:
        token = super()._create_refresh_token(request, code, access_token, previous)
        if previous is None and not Connection.objects.take_code(request.code, token.token_family):
            raise errors.InvalidGrantError(request=request)
        return token
