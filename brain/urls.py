"""The addresses of the project."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.utils import extend_schema

from api.mcp.http import McpView
from brain import health
from memories.admin.choices import Choices

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("api/", include("api.urls")),
    re_path(r"^mcp/?$", extend_schema(exclude=True)(McpView).as_view(), name="mcp"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/autocomplete/", admin.site.admin_view(Choices.as_view(admin_site=admin.site))),
    path("admin/", admin.site.urls),
]
if settings.BRAIN_OAUTH:
    urlpatterns.append(path("", include("oauth.urls")))

handler400 = "api.faults.bad_request"
handler403 = "api.faults.permission_denied"
handler404 = "api.faults.page_not_found"
handler500 = "api.faults.server_error"
