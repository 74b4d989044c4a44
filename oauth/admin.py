"""Clients and connections in the admin, in place of the toolkit's own pages."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from oauth2_provider.generators import generate_client_secret

from memories.admin.base import BrainAdmin, ReadOnlyAdmin
from oauth.forms import ClientForm
from oauth.models import Client, Connection


class ClientAdmin(BrainAdmin):
    """Clients."""

    form = ClientForm
    list_display = ("name", "client_id", "quelle", "created")
    sortable_by = ("name", "created")
    search_fields = ("name", "client_id")
    actions = None
    view_on_site = False
    list_explanation = gettext_lazy(
        "A client may ask a person for the rights of an access key. Most tell about themselves in a document; only "
        "those that have none are entered here."
    )
    form_explanation = gettext_lazy("Deleting a client ends its connections at once.")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """What its own document says is not changed here."""
        documented = isinstance(obj, Client) and obj.has_document
        return not documented and super().has_change_permission(request, obj)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What is asked, and of an old client what is known of it."""
        return (
            ("name", "redirect_uris", "client_id", "quelle", "created")
            if obj
            else ("name", "redirect_uris", "with_secret")
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What a client has from its making on."""
        return ("client_id", "quelle", "created") if obj else ()

    @admin.display(description=gettext_lazy("Known from"))
    def quelle(self, obj: Client) -> str:
        """Who said what is known of the client."""
        return _("its document") if obj.has_document else _("entered here")

    def save_model(self, request: HttpRequest, obj: Client, form: Any, change: Any) -> None:
        """Make the client with its secret, or store the fields that changed."""
        if change:
            obj.save(update_fields=form.changed_data)
            return
        secret = generate_client_secret()
        confidential = form.cleaned_data["with_secret"]
        obj.client_type = Client.CLIENT_CONFIDENTIAL if confidential else Client.CLIENT_PUBLIC
        obj.client_secret = secret
        obj.save()
        obj.text = secret if confidential else ""

    def response_add(self, request: HttpRequest, obj: Client, post_url_continue: str | None = None) -> HttpResponse:
        """The client's ID and its secret, this once: in no message, no session, no address and no cache."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Client made"),
            "explanation": _("Copy it now: it is shown this once and cannot be shown again.") if obj.text else "",
            "opts": self.opts,
            "client": obj,
        }
        response = TemplateResponse(request, "oauth/made.html", context)
        add_never_cache_headers(response)
        return response


class ConnectionAdmin(ReadOnlyAdmin):
    """Connections."""

    fields = ("client", "key", "granted_by", "granted_at", "zustand")
    list_display = ("client", "key", "granted_by", "granted_at", "zustand")
    list_select_related = ("client", "key__account")
    sortable_by = ("granted_at",)
    search_fields = ("client__name", "key__name", "granted_by")
    list_explanation = gettext_lazy(
        "A client that has a key's rights. Deleting a connection takes them away at once: its tokens go with it."
    )
    form_explanation = gettext_lazy("To take the rights away, delete the connection: it ends at once.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The connections, with what their state is told by."""
        found: Any = super().get_queryset(request)
        connections: QuerySet[Any] = found.with_state(timezone.now())
        return connections

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whoever has the permission: deleting is how a connection ends."""
        return bool(request.user.has_perm("oauth.delete_connection"))

    @admin.display(description=gettext_lazy("State"))
    def zustand(self, obj: Any) -> str:
        """Whether the client can use the rights."""
        if not obj.is_usable:
            return _("access key not usable")
        if obj.family is None:
            return _("allowed, not yet taken up")
        return _("active") if obj.is_alive else _("expired")

    def delete_model(self, request: HttpRequest, obj: Connection) -> None:
        """End it."""
        Connection.objects.filter(pk=obj.pk).end()

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """End them."""
        Connection.objects.filter(pk__in=queryset.values("pk")).end()


# The toolkit registers pages for its tables, which show texts that nobody needs to see.
for model in apps.get_app_config("oauth2_provider").get_models():
    if admin.site.is_registered(model):
        admin.site.unregister(model)

admin.site.register(Client, ClientAdmin)
admin.site.register(Connection, ConnectionAdmin)
