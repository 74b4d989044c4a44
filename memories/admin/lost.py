"""What somebody typed into the form of a memory that was deleted meanwhile: shown, so that it is not lost."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from memories.admin.history import url_of
from memories.kinds import Kind


def lost_input(request: HttpRequest, kind: Kind, key: int, form: Any) -> TemplateResponse:
    """The page with all that the form holds, and the way to the history."""
    typed = [(field.label, _as_text(field.value())) for field in form.visible_fields()]
    context = {
        **admin.site.each_context(request),
        "title": f"{kind.typ}_{key}",
        "opts": kind.memories._meta,  # noqa: SLF001 - Django's own public-by-custom API
        "typed": [(label, text) for label, text in typed if text],
        "history_url": url_of("history", kind, key),
    }
    request.current_app = admin.site.name
    return TemplateResponse(request, "admin/memories/lost.html", context)


def _as_text(value: Any) -> str:
    """A field's value; of a date and its time both."""
    return " ".join(filter(None, value)) if isinstance(value, list) else str(value or "")
