"""The page on which people switch their second factor on and off, and what it means for those signed in."""

from collections.abc import Callable
from typing import Any, cast

import django_otp
import segno
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import REDIRECT_FIELD_NAME, logout
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from memories import second_factor
from memories.admin.signing_in import CodeField, proves_to_be

PAGE = "admin:auth_user_second_factor"
_PENDING = "second_factor_pending"  # in the session: the secret that is not yet confirmed
# What remains open to whoever has to switch on his second factor first.
_OPEN = {PAGE, "admin:logout", "admin:jsi18n", "set_language"}


class OnForm(forms.Form):
    """What the app shows once it has the secret."""

    otp_token = CodeField(label=gettext_lazy("Code that the app shows"))


class OffForm(forms.Form):
    """The same that a sign-in takes."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    otp_token = CodeField(label=gettext_lazy("Code, or a recovery code"))


@sensitive_variables()
@sensitive_post_parameters()
def second_factor_view(request: HttpRequest) -> HttpResponse:
    """Switch the second factor on, or off."""
    user = cast("User", request.user)
    if second_factor.device_of(user) is None:
        return _on(request, user)
    if "switch_on" in request.POST:  # sent twice
        return HttpResponseRedirect(reverse(PAGE))
    return _off(request, user)


@sensitive_variables()
def _on(request: HttpRequest, user: User) -> HttpResponse:
    form = OnForm(request.POST if "switch_on" in request.POST else None)
    secret = request.session.setdefault(_PENDING, second_factor.new_secret())
    if form.is_valid():
        switched = second_factor.switch_on(user, secret, form.cleaned_data["otp_token"])
        if switched:
            device, codes = switched
            del request.session[_PENDING]
            request.session.cycle_key()
            django_otp.login(request, device)
            note(request, user, _("Second factor switched on."))
            return _page(request, _("The second factor is on"), codes=codes, next=_wanted(request))
        form.add_error("otp_token", _("This is not the code. Check the clock of the device, and try the next code."))
    address = second_factor.link(user, secret)
    return _page(
        request,
        _("Switch on the second factor"),
        form=form,
        secret=second_factor.spelled(secret),
        link=address,
        picture=qr(address),
        required=settings.BRAIN_TOTP_REQUIRED,
    )


@sensitive_variables()
def _off(request: HttpRequest, user: User) -> HttpResponse:
    form = OffForm(request.POST if "switch_off" in request.POST else None)
    if form.is_valid():
        given = form.cleaned_data
        if proves_to_be(request, user, given["password"], given["otp_token"]):
            second_factor.switch_off(user)
            note(request, user, _("Second factor switched off."))
            messages.success(request, _("The second factor is off."))
            return HttpResponseRedirect(reverse("admin:index"))
        form.add_error(None, _("Password or code is not right."))
    left = second_factor.recovery_codes_left(user)
    return _page(request, _("Second factor"), form=form, codes_left=left)


def _page(request: HttpRequest, title: str, **more: Any) -> HttpResponse:
    context = {**admin.site.each_context(request), "title": title, **more}
    return TemplateResponse(request, "admin/memories/second_factor.html", context)


def _wanted(request: HttpRequest) -> str:
    """The page of ours that somebody wanted when he was led here, else the start page."""
    wanted = request.GET.get(REDIRECT_FIELD_NAME, "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if ours else reverse("admin:index")


def qr(text: str) -> SafeString:
    """The text as a QR code: an SVG without styles and scripts, as the Content Security Policy wants it."""
    picture = segno.make(text, error="m").svg_inline(scale=5, light="#fff", omitsize=False)
    return mark_safe(picture)  # noqa: S308 - made here, of black and white squares


def note(request: HttpRequest, user: User, what: str) -> None:
    """Write into the person's record what became of the second factor, and who did it."""
    by = cast("User", request.user)
    LogEntry.objects.log_actions(by.pk, [user], CHANGE, change_message=what, single_object=True)


class SecondFactorMiddleware:
    """Sessions from before the second factor was switched on, or without its code, end; where it is required, whoever
    has none is led to the page that switches it on."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """All is done when the view is known."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_view: object) -> HttpResponse | None:
        """None goes on; machines come without a session and cost nothing here."""
        if settings.SESSION_COOKIE_NAME not in request.COOKIES or not request.user.is_authenticated:
            return None
        device = second_factor.device_of(request.user)
        if device is not None:
            if request.session.get(django_otp.DEVICE_ID_SESSION_KEY) == device.persistent_id:
                return None
            logout(request)
            return redirect_to_login(request.get_full_path())
        match = request.resolver_match
        if settings.BRAIN_TOTP_REQUIRED and match is not None and match.view_name not in _OPEN:
            wanted = request.get_full_path() if request.method == "GET" else ""
            return redirect_to_login(wanted, reverse(PAGE)) if wanted else HttpResponseRedirect(reverse(PAGE))
        return None
