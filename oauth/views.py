"""The page that asks a person, the address that gives out tokens, and what both are told to be."""

from typing import Any
from urllib.parse import urlencode, urlsplit

from csp.decorators import csp_update
from django.contrib import admin
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.views import View
from oauth2_provider import views as toolkit
from oauth2_provider.exceptions import FatalClientError, OAuthToolkitError
from oauth2_provider.http import OAuth2ResponseRedirect
from oauth2_provider.models import Grant
from oauth2_provider.views.mixins import OAuthLibMixin
from oauthlib.oauth2.rfc6749 import errors

from oauth.addresses import absolute, issuer, names_resource, origin_of, resource
from oauth.forms import KeyForm
from oauth.models import Client
from oauth.validator import SCOPE

_CHALLENGE_LENGTH = 43  # characters: of a SHA-256 in base64url (RFC 7636)


class AuthorizeView(OAuthLibMixin, View):
    """Asks whose rights a client gets. Who the client is stands in the query; whose rights, the person chooses."""

    http_method_names = ["get", "post"]

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Let in people who may change keys; whatever a client sends is looked at only then."""
        if not admin.site.has_permission(request):
            return redirect_to_login(request.get_full_path())
        if not request.user.has_perms(["memories.view_accesskey", "memories.change_accesskey"]):
            return self._refused(request, _("You may not lend the rights of access keys."), 403)
        try:
            self.asked = self._asked(request)
        except OAuthToolkitError as error:
            # A fault is told to the client only if somebody here knows it: a document can name any address.
            if not isinstance(error, FatalClientError) and self._is_trusted(request.GET.get("client_id", "")):
                return self._sent_back(error)
            told = _("The client is not known here, or did not ask as OAuth wants it (%(error)s).")
            return self._refused(request, told % {"error": error.oauthlib_error.error}, 400)
        return super().dispatch(request, *args, **kwargs)

    def get(self, request: HttpRequest) -> HttpResponse:
        """The page."""
        return self._page(request, KeyForm(request.user))

    def post(self, request: HttpRequest) -> HttpResponse:
        """Send the client a code, or that it was refused."""
        form = KeyForm(request.user, request.POST)
        allowed = "allow" in request.POST
        if allowed and not form.is_valid():
            return self._page(request, form)
        chosen = {"access_key": form.cleaned_data["key"], "resource": [resource()]} if allowed else {}
        # Nothing else that the client sent is kept with the code.
        answered = self.asked | chosen | {"nonce": None, "claims": None}
        try:
            address, *_rest = self.create_authorization_response(request, SCOPE, answered, allowed)
        except OAuthToolkitError as error:
            return self._sent_back(error)
        return _redirect(address)

    def _asked(self, request: HttpRequest) -> dict[str, Any]:
        """What the client asks. Raises FatalClientError when it must not be answered, OAuthToolkitError otherwise."""
        try:
            _scopes, asked = self.validate_authorization_request(request)
        except ValueError as error:  # an address that cannot be decoded
            raise FatalClientError(error=errors.InvalidRequestFatalError()) from error
        challenge = asked.get("code_challenge") or ""
        if asked.get("code_challenge_method") != "S256" or len(challenge) != _CHALLENGE_LENGTH:
            fault = errors.InvalidRequestError("PKCE with S256 is required.", state=asked["state"])
            raise OAuthToolkitError(fault, redirect_uri=asked["redirect_uri"])
        if not all(map(names_resource, request.GET.getlist("resource"))):
            fault = errors.CustomOAuth2Error("invalid_target", "There are no tokens for it.", state=asked["state"])
            raise OAuthToolkitError(fault, redirect_uri=asked["redirect_uri"])
        return dict(asked)

    def _is_trusted(self, client_id: str) -> bool:
        return any(not client.has_document for client in Client.objects.filter(client_id=client_id))

    def _page(self, request: HttpRequest, form: KeyForm) -> HttpResponse:
        client = Client.objects.get(client_id=self.asked["client_id"])
        sent_to = origin_of(self.asked["redirect_uri"])
        context = {
            **admin.site.each_context(request),
            "title": _("Allow a connection"),
            "explanation": _("A client asks to use this memory. It gets the rights of the access key that you choose."),
            "client": client,
            "client_host": urlsplit(client.client_id).hostname if client.has_document else "",
            "sent_to": sent_to,
            "on_this_machine": sent_to.startswith("http:"),
            "form": form,
        }
        response = TemplateResponse(request, "oauth/authorize.html", context)
        # Browsers apply form-action to where the answer to a form redirects, too.
        csp_update({"form-action": [sent_to]})(lambda _request: response)(request)
        add_never_cache_headers(response)
        return response

    def _refused(self, request: HttpRequest, told: str, status: int) -> HttpResponse:
        context = {**admin.site.each_context(request), "title": _("No connection"), "explanation": told}
        return TemplateResponse(request, "oauth/refused.html", context, status=status)

    def _sent_back(self, error: OAuthToolkitError) -> HttpResponse:
        """The fault, at the client's own address, with the name of who says so (RFC 9207)."""
        _kind, answer = self.error_response(error)
        return _redirect(f"{answer['url']}&{urlencode({'iss': issuer()})}")


def _redirect(address: str) -> HttpResponse:
    response: HttpResponse = OAuth2ResponseRedirect(address, ["https", "http"])
    return response


def _malformed(request: HttpRequest) -> HttpResponse | None:
    """A fault when no client means what was sent, and neither the toolkit nor a database could take it."""
    if request.META.get("QUERY_STRING") or any("\0" in value for value in request.POST.values()):
        return JsonResponse({"error": "invalid_request"}, status=400)
    return None


class TokenView(toolkit.TokenView):
    """Gives tokens for a code, or for a refresh token."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """The tokens, or the fault."""
        try:
            response = _malformed(request) or self.authorization_flow_token_response(request)
        except Grant.DoesNotExist:  # another request with the same code was quicker
            response = JsonResponse({"error": "invalid_grant"}, status=400)
        response["Content-Type"] = "application/json"  # the toolkit forgets it with some faults
        response["Cache-Control"] = "no-store"
        return response


class RevokeView(toolkit.RevokeTokenView):
    """Takes tokens back (RFC 7009)."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Nothing, or the fault."""
        return _malformed(request) or super().post(request, *args, **kwargs)


def _document(content: dict[str, Any]) -> JsonResponse:
    """For clients in browsers, too."""
    return JsonResponse(content, headers={"Access-Control-Allow-Origin": "*"})


def authorization_server(request: HttpRequest) -> JsonResponse:
    """RFC 8414."""
    methods = ["none", "client_secret_basic", "client_secret_post"]
    return _document(
        {
            "issuer": issuer(),
            "authorization_endpoint": absolute("oauth:authorize"),
            "token_endpoint": absolute("oauth:token"),
            "revocation_endpoint": absolute("oauth:revoke"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": methods,
            "revocation_endpoint_auth_methods_supported": methods,
            "scopes_supported": [SCOPE],
            "client_id_metadata_document_supported": True,
            "authorization_response_iss_parameter_supported": True,
        }
    )


def protected_resource(request: HttpRequest) -> JsonResponse:
    """RFC 9728."""
    return _document(
        {
            "resource": resource(),
            "resource_name": "Brain",
            "authorization_servers": [issuer()],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
        }
    )
