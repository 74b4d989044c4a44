"""Access keys and their accounts: made, shown once, limited, revoked; never deleted, since histories name them."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminTextareaWidget
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.base import BrainAdmin, ModelForm
from memories.admin.granting import check_keys, check_reach
from memories.errors import BrainError
from memories.keys import canonical_limit, key_name, make_key
from memories.models import AccessKey
from memories.models.access import Granted

if TYPE_CHECKING:
    from django.urls import URLPattern

LIMITS = ("typen", "nutzer", "agent", "scope", "scope_vk")
_KEY_LIMITS = (*LIMITS, "tools")
_MAY = ("may_write", "may_delete", "may_restore", "pruefpflicht", "portable")
_ASKED = ("account", "name", *_MAY, "expires_at")
_QUOTA = ("calls_a_minute", "entries_a_day", "bytes_a_day")
_HELP = {
    "typen": gettext_lazy("Which kinds: longterm, shortterm, brain, one a line. Empty: all."),
    "nutzer": gettext_lazy("Whose memories, and of a key whom it may speak for, one nutzer a line. Empty: all."),
    "agent": gettext_lazy("Memories of which agents, and of a key which it may be, one a line. Empty: all."),
    "scope": gettext_lazy("Memories of which scopes, one a line. Empty: all."),
    "scope_vk": gettext_lazy("Memories of which records of a scope, one a line. Empty: all."),
    "tools": gettext_lazy("Which tools it may call, one name a line, such as search_brain. Empty: all."),
}
_LABELS = {
    "typen": gettext_lazy("Kinds"),
    "nutzer": gettext_lazy("Nutzer"),
    "agent": gettext_lazy("Agent"),
    "scope": gettext_lazy("Scope"),
    "scope_vk": gettext_lazy("Record of the scope"),
    "tools": gettext_lazy("Tools"),
}


class Lines(forms.CharField):
    """A list of identifiers, one a line; none means all."""

    widget = AdminTextareaWidget({"rows": 3})

    def __init__(self, limit: str) -> None:
        super().__init__(label=_LABELS[limit], required=False, help_text=_HELP[limit])
        self.limit = limit

    def prepare_value(self, value: Any) -> Any:
        """The list as lines."""
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        """The list in canonical form."""
        lines = [line.strip() for line in super().clean(value).splitlines() if line.strip()]
        try:
            return canonical_limit(lines or None, self.limit)
        except BrainError as fault:
            raise ValidationError(str(fault.meldung)) from fault

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Whether the lines differ."""
        return (self.prepare_value(initial) or "").splitlines() != (data or "").splitlines()


def limit_fields(*limits: str) -> list[Lines]:
    """The form fields of these limits."""
    return [Lines(limit) for limit in limits]


def granted_by(form: Any, model: Any) -> Any:
    """What the form grants, as it would be stored."""
    names = {field.name for field in Granted._meta.fields} | {"pruefpflicht"}  # noqa: SLF001
    return model(**{name: value for name, value in form.cleaned_data.items() if name in names})


def _named(form: Any) -> str:
    """The form's name in canonical form."""
    try:
        return key_name(form.cleaned_data["name"], "name")
    except BrainError as fault:
        raise ValidationError(str(fault.meldung)) from fault


class KeyForm(ModelForm):
    """A key's name and what it may do."""

    typen, nutzer, agent, scope, scope_vk, tools = limit_fields(*_KEY_LIMITS)
    giver: Any = None  # who sends the form, see get_form

    class Meta:
        model = AccessKey
        fields = (*_ASKED, *_KEY_LIMITS, *_QUOTA)

    def clean_name(self) -> str:
        """The name in canonical form."""
        return _named(self)

    def clean(self) -> dict[str, Any]:
        """A key may do no more than whoever makes or changes it."""
        made: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            check_reach(self.giver, granted_by(self, AccessKey))
        return made

    def clean_expires_at(self) -> Any:
        """A new expiry lies ahead."""
        moment = self.cleaned_data["expires_at"]
        if moment and "expires_at" in self.changed_data and moment <= timezone.now():
            raise ValidationError(_("The expiry must be in the future."))
        return moment


class AccessKeyAdmin(BrainAdmin):
    """Access keys."""

    form = KeyForm
    list_display = ("name", "account", "prefix", "may_write", "grenzen", "expires_at", "last_used_at", "zustand")
    list_select_related = ("account",)
    sortable_by = ("name", "account", "expires_at", "last_used_at")
    search_fields = ("name", "prefix", "account__name")
    actions = None
    list_explanation = gettext_lazy(
        "With a key an agent calls the tools. Its secret is shown once, when it is made; only a hash is kept."
    )
    form_explanation = gettext_lazy(
        "What the key may not see does not exist for it. Limits hold from the next call on."
    )

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A revoked key stays as it is."""
        revoked = isinstance(obj, AccessKey) and obj.revoked_at is not None
        return not revoked and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: the history names keys."""
        return False

    def get_urls(self) -> "list[URLPattern]":
        """Revoking."""
        view = self.admin_site.admin_view(self.revoke_view)
        return [path("<path:object_id>/revoke/", view, name="memories_accesskey_revoke"), *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What is asked, and of an old key what is known of it."""
        record = ("prefix", "zustand", "created_at", "last_used_at", "revoked_at")
        return [
            (None, {"fields": _ASKED}),
            (_("Limits"), {"fields": _KEY_LIMITS}),
            (_("Limits of use"), {"fields": _QUOTA}),
            *([(_("Record"), {"fields": record})] if obj else []),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What a key has from its making on, and what happened to it."""
        return ("account", "prefix", "zustand", "created_at", "last_used_at", "revoked_at") if obj else ()

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        """The form, which knows who sends it."""
        form = super().get_form(request, obj, change=change, **kwargs)
        form.giver = request.user  # type: ignore[attr-defined]
        return form

    @admin.display(description=gettext_lazy("Limits"))
    def grenzen(self, obj: AccessKey) -> str:
        """The limits in short."""
        found = {name: getattr(obj, name) for name in _KEY_LIMITS}
        told = [f"{name}: {', '.join(only) or '–'}" for name, only in found.items() if only is not None]
        return "; ".join([_("review required")] * obj.pruefpflicht + told) or _("none")

    @admin.display(description=gettext_lazy("State"))
    def zustand(self, obj: AccessKey) -> str:
        """Whether the key can be used."""
        if obj.revoked_at:
            return _("revoked")
        if obj.expires_at and obj.expires_at <= timezone.now():
            return _("expired")
        return _("active") if obj.account.is_active else _("account not active")

    def save_model(self, request: HttpRequest, obj: AccessKey, form: Any, change: Any) -> None:
        """Make the key, or store the fields that changed: others may have been set meanwhile."""
        if change:
            obj.save(update_fields=form.changed_data)
            return
        made = form.cleaned_data
        key, text = make_key(
            name=made["name"],
            account=made["account"].name,
            only={limit: made[limit] for limit in _KEY_LIMITS},
            expires_at=made["expires_at"],
            **{name: made[name] for name in (*_MAY, *_QUOTA)},
        )
        obj.pk, obj.prefix = key.pk, key.prefix
        obj.text = text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: AccessKey, post_url_continue: str | None = None) -> HttpResponse:
        """The key's text, this once: in no message, no session, no address and no cache."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Access key made"),
            "explanation": _("Copy it now: it is shown this once and cannot be shown again."),
            "opts": self.opts,
            "key": obj,
            "text": obj.text,  # type: ignore[attr-defined]
        }
        response = TemplateResponse(request, "admin/memories/accesskey/made.html", context)
        add_never_cache_headers(response)
        return response

    def revoke_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks, then ends the key's use for good."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        key = self.get_object(request, object_id)
        if key is None:
            raise Http404
        if request.method == "POST":
            key.revoke(timezone.now())
            self.log_change(request, key, _("Revoked."))
            self.message_user(request, _("The key %(name)s is revoked.") % {"name": key.name}, messages.SUCCESS)
            return HttpResponseRedirect(reverse("admin:memories_accesskey_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Revoke access key"),
            "explanation": _("From the next call on the key is refused. This cannot be undone."),
            "opts": self.opts,
            "key": key,
            "zustand": self.zustand(key),
        }
        return TemplateResponse(request, "admin/memories/accesskey/revoke.html", context)


class AccountForm(ModelForm):
    """An account's name and whether it may be used."""

    giver: Any = None  # who sends the form, see get_form

    def clean_is_active(self) -> bool:
        """Nobody makes keys usable again that may do more than he."""
        active: bool = self.cleaned_data["is_active"]
        if active and self.instance.pk and "is_active" in self.changed_data:
            check_keys(self.giver, self.instance.keys.unended(timezone.now()))
        return active

    def clean_name(self) -> str:
        """The name in canonical form."""
        return _named(self)


class ServiceAccountAdmin(BrainAdmin):
    """Service accounts."""

    form = AccountForm
    fields = ("name", "is_active")
    list_display = ("name", "is_active")
    search_fields = ("name",)
    actions = None
    list_explanation = gettext_lazy("A service account is a program that calls the tools. It may hold several keys.")
    form_explanation = gettext_lazy("An account that is not active cannot use any of its keys.")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Nobody: the history names its keys. It can be made inactive."""
        return False

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:  # noqa: FBT001, FBT002
        """The form, which knows who sends it."""
        form = super().get_form(request, obj, change=change, **kwargs)
        form.giver = request.user  # type: ignore[attr-defined]
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: Any) -> None:
        """Store the account, of an old one the fields that changed."""
        obj.save(update_fields=form.changed_data if change else None)
