"""Signing in: user name, password and, for whoever switched it on, a code; locked for a while after some failures."""

from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from axes.models import AccessAttempt
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import authenticate
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_variables

from memories import second_factor

_IPV6_NETWORK = 64  # bits that are given out as one


class Backend(ModelBackend):
    """Whoever has a second factor needs it wherever a password is asked for. A wrong code is a failure like any."""

    @sensitive_variables()
    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **more: Any
    ) -> Any:
        """The person; `otp_token` is the code."""
        user: Any = super().authenticate(request, username, password)
        if user is None:
            return None
        device = second_factor.device_of(user)
        if device is not None:
            if not second_factor.is_right(user, more.get("otp_token", "")):
                return None
            user.otp_device = device  # at sign-in, the session notes it
        return user


class CodeField(forms.CharField):
    """A code of an authenticator app, or a recovery code."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"autocomplete": "one-time-code", "spellcheck": "false"})
        super().__init__(max_length=20, widget=widget, **options)


class SignInForm(AdminAuthenticationForm):
    """The page to sign in. It does not tell which of the three is wrong."""

    otp_token = CodeField(
        label=gettext_lazy("Code"),
        required=False,
        help_text=gettext_lazy("Only if you have switched on the second factor."),
    )

    error_messages = {
        **AdminAuthenticationForm.error_messages,
        "invalid_login": gettext_lazy(
            "That is not right. Check user name, password and, if you have switched it on, the code."
        ),
    }

    @sensitive_variables()
    def clean(self) -> dict[str, Any]:
        """Who it is."""
        given = self.cleaned_data
        if given.get("username") is not None and given.get("password"):
            names = ("username", "password", "otp_token")
            self.user_cache: Any = authenticate(self.request, **{name: given.get(name, "") for name in names})
            if self.user_cache is None:
                raise self.get_invalid_login_error()
            self.confirm_login_allowed(self.user_cache)
        return given


@sensitive_variables()
def proves_to_be(request: HttpRequest, user: User, password: str, code: str) -> bool:
    """Whether somebody signed in can do so again; failures count as they do at the sign-in."""
    return authenticate(request, username=user.get_username(), password=password, otp_token=code) == user


def address_of(request: HttpRequest) -> str | None:
    """The address that a request comes from: the proxy's, unless BRAIN_PROXIES says how many there are.

    Of IPv6 the network, since whoever has one address has all of it.
    """
    told = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    proxies = settings.BRAIN_PROXIES
    text = told[-proxies] if 0 < proxies <= len(told) else ""
    for candidate in (text, request.META.get("REMOTE_ADDR", "")):
        try:
            address = ip_address(candidate.strip())
        except ValueError:
            continue
        if isinstance(address, IPv6Address):
            mapped = address.ipv4_mapped
            return str(mapped or ip_network((int(address), _IPV6_NETWORK), strict=False).network_address)
        return str(address)
    return None


def anonymous(*_who: object) -> str:
    """What the log calls whoever fails to sign in; `manage.py axes_list_attempts` tells more."""
    return "somebody"


def locked_out(request: HttpRequest, response: HttpResponse, credentials: Any = None) -> HttpResponse:
    """The page for whoever has failed too often: when to try again."""
    del response
    tried = AccessAttempt.objects.filter(
        username=(credentials or {}).get("username"), ip_address=address_of(request)
    ).aggregate(last=Max("attempt_time"))["last"]
    until = (tried or timezone.now()) + settings.AXES_COOLOFF_TIME
    left = max(until - timezone.now(), timedelta(minutes=1))
    context = {
        **admin.site.each_context(request),
        "title": _("Too many failed attempts"),
        "until": timezone.localtime(until),
        "minutes": -(-left // timedelta(minutes=1)),
    }
    page = render(request, "admin/memories/locked.html", context, status=429)
    page["Retry-After"] = str(int(left.total_seconds()))
    add_never_cache_headers(page)
    return page
