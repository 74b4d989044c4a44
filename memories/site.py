"""The admin's site: Django's, with pages that belong to no one model, and their places in the menu."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils.functional import Promise

if TYPE_CHECKING:
    from django.urls import URLPattern, URLResolver

_APP = "memories"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the app: the end of its address and of that address's name, its title, and who finds it in the menu."""

    name: str
    title: Promise
    view: Callable[[HttpRequest], HttpResponse]
    is_open_to: Callable[[HttpRequest], bool]


class BrainSite(AdminSite):
    """The site; `memories.admin` gives it its pages, as it gives it the models."""

    pages: Sequence[Page] = ()

    def get_urls(self) -> "list[URLPattern | URLResolver]":
        """Those of the pages, and those of the models."""
        own = [
            path(f"{_APP}/{page.name}/", self.admin_view(page.view), name=f"{_APP}_{page.name}") for page in self.pages
        ]
        return [*own, *super().get_urls()]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """The menu, in which pages stand among the models."""
        found: list[Any] = super().get_app_list(request, app_label)
        for app in found:
            if app["app_label"] == _APP:
                entries = [*app["models"], *(self._entry(page) for page in self.pages if page.is_open_to(request))]
                app["models"] = sorted(entries, key=lambda entry: str(entry["name"]).lower())
        return found

    def _entry(self, page: Page) -> dict[str, Any]:
        return {
            "name": str(page.title),
            "object_name": page.name,
            "perms": {"view": True},
            "admin_url": reverse(f"admin:{_APP}_{page.name}", current_app=self.name),
            "add_url": None,
            "view_only": True,
        }
