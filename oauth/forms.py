"""The forms of OAuth: which key's rights are lent, and what is known of a client."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.widgets import AdminTextareaWidget, AdminTextInputWidget
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memories.admin.base import ModelForm
from memories.admin.granting import covers
from memories.models import AccessKey
from memories.principal import Action
from oauth.addresses import may_be_redirected_to
from oauth.models import Client

if TYPE_CHECKING:
    KeyField = forms.ModelChoiceField[AccessKey]
else:
    KeyField = forms.ModelChoiceField

_LIMITS = ("typen", "nutzer", "agent", "scope", "scope_vk", "tools")


class Keys(KeyField):
    """The usable keys, each with what it may do."""

    def label_from_instance(self, obj: AccessKey) -> str:
        """What the key may do, and where it is limited."""
        deeds = {
            Action.READ: _("reads"),
            Action.INSERT: _("proposes"),
            Action.WRITE: _("writes"),
            Action.DELETE: _("deletes"),
            Action.RESTORE: _("restores"),
        }
        limits = {name: getattr(obj, name) for name in _LIMITS}
        told = [", ".join(word for action, word in deeds.items() if action in obj.actions())]
        told += [f"{name}: {', '.join(only) or '–'}" for name, only in limits.items() if only is not None]
        if obj.expires_at:
            told.append(_("until %(date)s") % {"date": date_format(timezone.localtime(obj.expires_at), "DATE_FORMAT")})
        return f"{obj.name} ({obj.account}): {'; '.join(told)}"


class KeyForm(forms.Form):
    """Whose rights a client gets: those of a key that may do no more than the person."""

    key = Keys(
        queryset=AccessKey.objects.none(),
        label=gettext_lazy("Access key"),
        widget=forms.RadioSelect,
        empty_label=None,
    )

    def __init__(self, lender: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        keys: Any = self.fields["key"]
        usable = AccessKey.objects.usable(timezone.now()).select_related("account")
        keys.queryset = usable.filter(pk__in=[key.pk for key in usable if covers(lender, key)])


class ClientForm(ModelForm):
    """A client's name and addresses."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=255, widget=AdminTextInputWidget)
    redirect_uris = forms.CharField(
        label=gettext_lazy("Redirect addresses"),
        widget=AdminTextareaWidget({"rows": 3}),
        help_text=gettext_lazy("Where the client waits for its answer, one a line; its own settings page shows them."),
    )
    with_secret = forms.BooleanField(
        label=gettext_lazy("With a secret"),
        required=False,
        initial=True,
        help_text=gettext_lazy("For a client on a server. One on a person's own machine can keep none."),
    )

    class Meta:
        model = Client
        fields = ("name", "redirect_uris")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk:
            del self.fields["with_secret"]
        self.instance.authorization_grant_type = Client.GRANT_AUTHORIZATION_CODE
        self.initial["redirect_uris"] = "\n".join(self.instance.redirect_uris.split())

    def clean_redirect_uris(self) -> str:
        """Each over https, or on the person's own machine."""
        addresses: list[str] = self.cleaned_data["redirect_uris"].split()
        for address in addresses:
            if not may_be_redirected_to(address):
                raise ValidationError(_("%(address)s does not begin with https://.") % {"address": address})
        return " ".join(addresses)
