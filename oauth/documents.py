"""Clients whose ID is the address of a document about them (draft-ietf-oauth-client-id-metadata-document)."""

from typing import Any
from urllib.parse import urlsplit

from django.urls import reverse
from oauth2_provider.cimd import CIMDError, SafeMetadataFetcher

from oauth.addresses import may_be_redirected_to


class OnlyForWhoeverIsSignedIn:
    """Documents are fetched for the page that asks a person, never for a stranger at another address."""

    def has_permission(self, request: Any, client_id: str) -> bool:
        """Whether the request is one of that page, which comes after signing in."""
        return str(urlsplit(request.uri).path) == reverse("oauth:authorize")


class Fetcher(SafeMetadataFetcher):
    """The toolkit's (https, public addresses, small, quick, no redirects), with what today's documents hold."""

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        """The document and how many seconds it holds. Raises CIMDError."""
        document, seconds = super().fetch(client_id)
        methods = document.get("token_endpoint_auth_methods_supported")
        if isinstance(methods, list) and "none" in methods:
            # ChatGPT names what it likes best, and that it can do without.
            document["token_endpoint_auth_method"] = "none"  # noqa: S105 - a word of RFC 7591
        addresses = document.get("redirect_uris")
        if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
            raise CIMDError("redirect_uris must be an array of strings")
        document["redirect_uris"] = [address for address in addresses if may_be_redirected_to(address)]
        return document, seconds
